import { type License, licenseStatus } from '../auth/license.js'
import { passwordPepper } from '../auth/password-policy.js'
import { systemClock } from '../base/clock.js'
import type { Logger } from '../base/log.js'
import { pooledRandom } from '../base/random.js'
import type { DataDirectory } from '../data/directory.js'
import { authorityPublicKey } from '../data/license-authority.js'
import { LoginGate } from '../front/http/auth/login-gate.js'
import { ShardedOutbox } from '../dispatch/duties/mail-outbox.js'
import { PasswordPool } from '../dispatch/pools/password-pool.js'
import type { Shards } from '../dispatch/links/shards.js'
import type { PoolListener } from '../dispatch/pools/thread-pool.js'
import { MailSender } from '../outbound/mail-sender.js'
import type { LicenseAudit } from '../protocol/audit-messages.js'
import type { Config } from '../settings/config.js'
import type { AuthServices } from './auth.js'

/** The services of the auth add-on that the main thread provides to all fronts. */
export interface MainAuthServices extends AuthServices {
  passwords: PasswordPool
  /** The description of the license for the audit strand. */
  licenseStatus: LicenseAudit
  /** Sends queued mails. */
  start(): void
  stop(): Promise<void>
}

interface AuthServicesParts {
  directory: DataDirectory
  shards: Shards
  isOwn(shard: number): boolean
  log: Logger
  /** Listener of the threads that hash passwords. */
  listener: PoolListener
}

/**
 * Creates the services if the auth add-on is on, even without a license, so that issued tokens stay valid.
 */
export async function makeAuthServices(
  config: Config,
  around: AuthServicesParts,
): Promise<MainAuthServices | undefined> {
  if (!config.auth.enabled) return undefined
  const { directory, log } = around
  const passwords = new PasswordPool(
    { pepper: passwordPepper(directory.masterSeed) },
    { listener: around.listener },
  )
  const mail = await mailSender(config, around)
  const { license, status } = await validLicense(config, log)
  return {
    passwords,
    gate: new LoginGate({ attemptsMax: config.auth.maxLoginAttempts }),
    license,
    licenseStatus: status,
    mailOn: mail !== undefined,
    onMail: () => mail?.wake(),
    start: () => mail?.wake(),
    async stop() {
      await mail?.stop()
      await passwords.close()
    },
  }
}

/**
 * The mail sender, if a mail server is configured. Imported only then: its library is a quarter of what a
 * start loads otherwise.
 */
async function mailSender(
  { mail }: Config,
  { shards, isOwn, log }: AuthServicesParts,
): Promise<MailSender | undefined> {
  if (mail === undefined) return undefined
  const { smtpServer } = await import('../outbound/mail.js')
  return new MailSender({
    outbox: new ShardedOutbox(shards, isOwn),
    server: smtpServer(mail),
    linkBaseUrl: mail.linkBaseUrl,
    clock: systemClock,
    random: pooledRandom(),
    log,
  })
}

/**
 * The license in force and its description for the audit strand; logs a line if there is no valid license.
 */
async function validLicense(
  { auth, dataDir }: Config,
  log: Logger,
): Promise<{ license: License | undefined; status: LicenseAudit }> {
  const publicKey = auth.licensePublicKey ?? authorityPublicKey(dataDir)
  const none = { licensee: null, expires_at_ms: null, features: [], authority: publicKey ?? null }
  const checked = await licenseStatus({ licenseKey: auth.licenseKey, publicKey, nowMs: systemClock() })
  if (checked.state !== 'valid') {
    const { state: reason, detail } = checked
    log.warn({ reason, detail }, 'the auth add-on has no valid license: its routes answer 402')
    return { license: undefined, status: { ...none, state: checked.state } }
  }
  const { license } = checked
  const { licensee, expiresAtMs, features } = license
  return {
    license,
    status: { ...none, state: 'valid', licensee, expires_at_ms: expiresAtMs, features },
  }
}
