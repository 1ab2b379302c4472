import type { RelyingParty } from '../auth/passkey.js'
import { isOrigin, matching, type Parse } from './parsers.js'
import { type Environment, type SettingFault, type ValueOf, setting, valuesOf } from './setting.js'

/**
 * A host name without scheme, port and final dot, in lower case; not an IP address, which cannot have
 * passkeys.
 */
const domain: Parse<string> = (text) => {
  const name = text.toLowerCase()
  const shape =
    /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*(?!\d+$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
  return shape.test(name) ? name : undefined
}

/** An origin on which browsers allow passkeys: https, or http on this machine. */
const pageOrigin: Parse<string> = (text) => {
  if (!isOrigin(text)) return undefined
  const { protocol, hostname } = new URL(text)
  if (domain(hostname) === undefined) return undefined
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost')
  return protocol === 'https:' || isLocal ? text : undefined
}

/** The settings of passkeys (docs/SIGN-IN.md). */
export const passkeySettings = {
  webauthnRpId: setting<string | undefined>({
    name: 'SERVICE_WEBAUTHN_RP_ID',
    default: undefined,
    description:
      'The domain of passkeys. Without it and SERVICE_WEBAUTHN_ORIGIN, the passkey routes answer 501. A change invalidates ' +
      'all passkeys.',
    allowed: 'a domain such as example.com, without scheme and port',
    parse: domain,
  }),
  webauthnOrigin: setting<string | undefined>({
    name: 'SERVICE_WEBAUTHN_ORIGIN',
    default: undefined,
    description: 'The web origin of the pages that use passkeys. It must also be in SERVICE_CORS_ORIGINS.',
    allowed:
      'an origin such as https://app.example.com, or http://localhost:3000 for development, within the domain of ' +
      'SERVICE_WEBAUTHN_RP_ID',
    parse: pageOrigin,
  }),
  webauthnRpName: setting({
    name: 'SERVICE_WEBAUTHN_RP_NAME',
    default: 'Strandfast',
    description: 'The name that browsers show in a passkey dialog.',
    allowed: '1 to 64 characters without control characters',
    parse: matching(/^[^\p{Cc}\p{Cs}]{1,64}$/u),
  }),
} as const

/** Reads the relying party of passkeys, frozen; undefined unless both domain and origin are set. */
export function readPasskeys(value: ValueOf): RelyingParty | undefined {
  const {
    webauthnRpId: rpId,
    webauthnOrigin: origin,
    webauthnRpName: name,
  } = valuesOf(passkeySettings, value)
  return rpId === undefined || origin === undefined ? undefined : Object.freeze({ rpId, origin, name })
}

/** The fault of an origin outside the domain of passkeys, where browsers would refuse all passkeys. */
export function passkeyFaults(env: Environment): SettingFault[] {
  const { webauthnRpId, webauthnOrigin } = passkeySettings
  const rpId = webauthnRpId.parse(env[webauthnRpId.name] ?? '')
  const origin = webauthnOrigin.parse(env[webauthnOrigin.name] ?? '')
  if (rpId === undefined || origin === undefined) return []
  const { hostname } = new URL(origin)
  if (hostname === rpId || hostname.endsWith(`.${rpId}`)) return []
  return [{ name: webauthnOrigin.name, given: `${origin} with ${rpId}`, allowed: webauthnOrigin.allowed }]
}

/** A warning if only one of the two settings is set. */
export function passkeyWarnings(env: Environment): string[] {
  const { webauthnRpId, webauthnOrigin } = passkeySettings
  const set = [webauthnRpId.name, webauthnOrigin.name].filter((name) => env[name] !== undefined)
  const [only] = set
  if (only === undefined || set.length === 2) return []
  const missing = only === webauthnRpId.name ? webauthnOrigin.name : webauthnRpId.name
  return [`${only} is set without ${missing}: the passkey routes answer 501`]
}
