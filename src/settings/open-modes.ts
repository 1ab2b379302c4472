import { isLoopback } from '../base/loopback.js'
import type { AuthConfig, MailConfig } from './auth.js'

/** The settings that can allow access without a credential. */
interface OpenSettings {
  auth: Pick<AuthConfig, 'enabled'>
  mail?: MailConfig
  environment: 'development' | 'production'
  host: string
}

/**
 * Whether answers to requests of this machine contain magic links and verify tokens, because mail is off and
 * the server is for development on one machine (docs/SIGN-IN.md).
 */
export function answersContainTokens({ auth, mail, environment, host }: OpenSettings): boolean {
  return auth.enabled && mail === undefined && environment !== 'production' && isLoopback(host)
}

/** Access that is possible without a credential, as sentences without a full stop. */
export function openModes(settings: OpenSettings): string[] {
  if (!answersContainTokens(settings)) return []
  return [
    'SERVICE_MAIL_ENABLED is not true: answers contain magic links and verify tokens, so anyone on this machine can sign in as any user',
  ]
}

/** A warning if users cannot receive links, as a sentence without a full stop. */
export function linkWarnings(settings: OpenSettings): string[] {
  const { auth, mail } = settings
  if (!auth.enabled || mail !== undefined || answersContainTokens(settings)) return []
  return ['SERVICE_MAIL_ENABLED is not true: only answers to the root key contain the tokens of links']
}
