import { BlockList } from 'node:net'
import type { AuthConfig, MailConfig } from './auth.js'

/** The settings that say what is open to callers without a credential. */
interface OpenSettings {
  auth: Pick<AuthConfig, 'enabled'>
  mail?: MailConfig
  environment: 'development' | 'production'
  host: string
  dataOpen: boolean
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** Whether only this machine reaches a server that listens on `host`. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || loopback.check(host) || loopback.check(host, 'ipv6')
}

/**
 * Whether magic links and verify tokens stand in the answer to any caller (docs/OPERATIONS.md, Signing people in): mail is off,
 * and the server is one for development, on one machine.
 */
export function answersLinks({ auth, mail, environment, host }: Omit<OpenSettings, 'dataOpen'>): boolean {
  return auth.enabled && mail === undefined && environment !== 'production' && isLoopback(host)
}

/** What is open to callers without a credential, a sentence each without a full stop. */
export function openModes(settings: OpenSettings): string[] {
  const open: string[] = []
  if (settings.dataOpen) {
    open.push(
      'SERVICE_DATA_OPEN=true: anyone who reaches the server reads and writes all data, without a credential',
    )
  }
  if (answersLinks(settings)) {
    open.push(
      'SERVICE_MAIL_ENABLED is not true: answers contain magic links and verify tokens, so anyone on this machine signs in as any user',
    )
  }
  return open
}

/** Warns that links reach no user, a sentence without a full stop. */
export function linkWarnings(settings: OpenSettings): string[] {
  const { auth, mail } = settings
  if (!auth.enabled || mail !== undefined || answersLinks(settings)) return []
  return ['SERVICE_MAIL_ENABLED is not true: the tokens of links stand in answers to the root key only']
}
