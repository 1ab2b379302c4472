import type { RelyingParty } from '../auth/passkey.js'
import { isOrigin, list, matching, type Parse } from './parsers.js'
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
function isPageOrigin(text: string): boolean {
  if (!isOrigin(text)) return false
  const { protocol, hostname } = new URL(text)
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost')
  return domain(hostname) !== undefined && (protocol === 'https:' || isLocal)
}

/** The origin of an Android app: the SHA-256 of its signing certificate, base64url. */
const appOrigin = /^android:apk-key-hash:[A-Za-z0-9_-]{43}$/

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
  webauthnOrigin: setting<readonly string[]>({
    name: 'SERVICE_WEBAUTHN_ORIGIN',
    default: [],
    description:
      'The origins of the pages and apps that use passkeys. Those of pages must also be in SERVICE_CORS_ORIGINS. An iOS ' +
      'app has the origin `https://` followed by SERVICE_WEBAUTHN_RP_ID.',
    allowed:
      'origins separated by commas: of pages, such as https://app.example.com, or http://localhost:3000 for development, ' +
      'at least one of them within the domain of SERVICE_WEBAUTHN_RP_ID, the others https; and of Android apps, ' +
      'android:apk-key-hash: followed by 43 characters',
    parse: list((text) => isPageOrigin(text) || appOrigin.test(text)),
  }),
  webauthnRpName: setting({
    name: 'SERVICE_WEBAUTHN_RP_NAME',
    default: 'Strandfast',
    description: 'The name that browsers show in a passkey dialog.',
    allowed: '1 to 64 characters without control characters',
    parse: matching(/^[^\p{Cc}\p{Cs}]{1,64}$/u),
  }),
} as const

/** Reads the relying party of passkeys, frozen; undefined unless both domain and origins are set. */
export function readPasskeys(value: ValueOf): RelyingParty | undefined {
  const {
    webauthnRpId: rpId,
    webauthnOrigin: origins,
    webauthnRpName: name,
  } = valuesOf(passkeySettings, value)
  return rpId === undefined || origins.length === 0 ? undefined : Object.freeze({ rpId, origins, name })
}

/**
 * The fault of origins that cannot use passkeys of the domain. Pages outside of it can as related origins
 * (WebAuthn Level 3, 5.11), which are https; but if no page is within the domain, one of the two is a mistake.
 */
export function passkeyFaults(env: Environment): SettingFault[] {
  const { webauthnRpId, webauthnOrigin } = passkeySettings
  const rpId = webauthnRpId.parse(env[webauthnRpId.name] ?? '')
  const origins = webauthnOrigin.parse(env[webauthnOrigin.name] ?? '')
  if (rpId === undefined || origins === undefined) return []
  const pages = origins.filter(isPageOrigin)
  const outside = pages.filter((origin) => !isWithin(new URL(origin).hostname, rpId))
  const isPossible = outside.length < pages.length && outside.every((origin) => origin.startsWith('https:'))
  if (outside.length === 0 || isPossible) return []
  const given = `${outside.join(', ')} with ${rpId}`
  return [{ name: webauthnOrigin.name, given, allowed: webauthnOrigin.allowed }]
}

function isWithin(hostname: string, rpId: string): boolean {
  return hostname === rpId || hostname.endsWith(`.${rpId}`)
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
