import { isLoopback } from '../base/loopback.js'
import type { AuthConfig, MailConfig } from './auth.js'

/** The settings that can allow access without a credential. */
interface OpenSettings {
  auth: Pick<AuthConfig, 'enabled'>
  mail?: MailConfig
  environment: 'development' | 'production'
  host: string
  dataOpen: boolean
}

/**
 * Whether answers to any caller contain magic links and verify tokens, because mail is off and the server is
 * for development on one machine (docs/SIGN-IN.md).
 */
export function answersContainTokens({
  auth,
  mail,
  environment,
  host,
}: Omit<OpenSettings, 'dataOpen'>): boolean {
  return auth.enabled && mail === undefined && environment !== 'production' && isLoopback(host)
}

/** Access that is possible without a credential, as sentences without a full stop. */
export function openModes(settings: OpenSettings): string[] {
  const open: string[] = []
  if (settings.dataOpen) {
    open.push(
      'SERVICE_DATA_OPEN=true: anyone who can reach the server can read and write all data without a credential',
    )
  }
  if (answersContainTokens(settings)) {
    open.push(
      'SERVICE_MAIL_ENABLED is not true: answers contain magic links and verify tokens, so anyone on this machine can sign in as any user',
    )
  }
  return open
}

/** A warning if users cannot receive links, as a sentence without a full stop. */
export function linkWarnings(settings: OpenSettings): string[] {
  const { auth, mail } = settings
  if (!auth.enabled || mail !== undefined || answersContainTokens(settings)) return []
  return ['SERVICE_MAIL_ENABLED is not true: only answers to the root key contain the tokens of links']
}
