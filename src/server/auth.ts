import { bundledBlocklist } from '../auth/password-blocklist.js'
import { passwordPepper } from '../auth/password-pepper.js'
import type { License } from '../auth/license.js'
import { licenseStanding } from '../auth/license-standing.js'
import { type Namespace, rootNamespace } from '../auth/namespace.js'
import { steadyClock, systemClock } from '../base/clock.js'
import type { Logger } from '../base/log.js'
import { pooledRandom } from '../base/random.js'
import type { Config } from '../settings/config.js'
import type { DataDirectory } from '../data-directory/data-directory.js'
import { ShardedOutbox } from '../dispatch/mail-outbox.js'
import { PasswordPool } from '../dispatch/password-pool.js'
import type { Shards } from '../dispatch/shards.js'
import type { PoolListener } from '../dispatch/thread-pool.js'
import { activation } from '../http/auth/activation.js'
import { authContext } from '../http/auth/context.js'
import { Revocations } from '../http/auth/revocations.js'
import { Namespaces } from '../http/auth/namespaces.js'
import { UserTokens } from '../http/auth/tokens.js'
import type { AuthHandling } from '../http/handling.js'
import type { StreamHub } from '../http/streams/hub.js'
import type { OpenUploads } from '../http/uploads.js'
import { authorityPublicKey } from '../data-directory/license-authority.js'
import { oauthFlow } from './oauth.js'
import { MailSender } from '../outbound/mail-sender.js'
import type { LicenseTold } from '../protocol/audit-messages.js'
import type { AuthRules, KeyEpochs } from '../protocol/auth-messages.js'
import type { PasskeyCeremonies } from '../routes/auth-route.js'

/** The running parts of the auth add-on. */
export interface AuthParts {
  handling: AuthHandling
  tokens: UserTokens
  passwords: PasswordPool
  /** What the audit strand says about the license. */
  license: LicenseTold
  /**
   * Loads revocations, so that no revoked token is accepted, and sends waiting mails.
   * @throws Error when a shard does not answer with its revocations
   */
  start(): Promise<void>
  stop(): Promise<void>
}

/** What the auth add-on needs of the rest of the server. */
interface AuthSurroundings {
  directory: DataDirectory
  shards: Shards
  log: Logger
  /** Open streams, which end with the token that opened them. */
  streams: StreamHub
  /** Listener of the threads that hash passwords. */
  told: PoolListener
  /** Requests whose bodies are arriving, which end in the same way. */
  uploads: OpenUploads
}

/** The auth settings that shards need. */
export function authRules({ auth }: Config, { tokenEra }: DataDirectory): AuthRules {
  return {
    lockout: { maxAttempts: auth.maxLoginAttempts, durationSecs: auth.lockoutDurationSecs },
    refreshExpirySecs: auth.refreshTokenExpirySecs,
    jwtExpirySecs: auth.jwtExpirySecs,
    requireEmailVerify: auth.requireEmailVerify,
    metadataBytesMax: auth.metadataBytesMax,
    tokenEra,
  }
}

/** Replaces the add-on while it is off. */
export function authOff(config: Config): AuthHandling {
  return {
    refusal: activation(false, undefined, systemClock),
    root: rootNamespace(config.agentId),
    context: undefined,
    missing: () => undefined,
  }
}

/** Makes the auth add-on if it is on, even without a license, so that issued tokens stay valid. */
export async function makeAuth(config: Config, around: AuthSurroundings): Promise<AuthParts | undefined> {
  if (!config.auth.enabled) return undefined
  const { directory, shards, log } = around
  const root = rootNamespace(config.agentId)
  const ended = new Revocations(systemClock, steadyClock)
  const namespaces = new Namespaces(shards)
  const missing = (namespace: Namespace) => namespaces.missing(namespace)
  const tokens = new UserTokens({
    masterSeed: directory.masterSeed,
    tokenEra: directory.tokenEra,
    issuer: config.auth.issuer,
    jwtExpirySecs: config.auth.jwtExpirySecs,
    root,
    ended,
    clock: systemClock,
    missing,
    epochsOf: (namespace) => epochsOf(shards, namespace),
  })
  around.uploads.watchUsers((user) => tokens.stillGood(user))
  const passwords = new PasswordPool({ pepper: passwordPepper(directory.masterSeed) }, { told: around.told })
  const mail = await mailSender(config, around)
  const context = authContext({
    shards,
    passwords,
    tokens,
    passkeys: await passkeyCeremonies(config),
    oauth: await oauthFlow(config.oauth, { masterSeed: directory.masterSeed, log }),
    clock: systemClock,
    settings: {
      jwtExpirySecs: config.auth.jwtExpirySecs,
      magicLinkExpirySecs: config.auth.magicLinkExpirySecs,
      requireEmailVerify: config.auth.requireEmailVerify,
      // Made before the server listens, since it blocks the front for tens of milliseconds.
      passwordBlocklist: config.auth.passwordBlocklist ? bundledBlocklist() : undefined,
      mailOn: mail !== undefined,
      production: config.environment === 'production',
      loginAttemptsMax: config.auth.maxLoginAttempts,
    },
    onEnded(namespace, what) {
      for (const one of what) ended.add(namespace.id, one)
      around.streams.endOfUsers((user) => tokens.stillGood(user) === undefined)
      around.uploads.endOfUsers()
    },
    onMail: () => mail?.wake(),
  })
  const { license, told } = await validLicense(config, log)
  return {
    handling: { refusal: activation(true, license, systemClock), root, context, missing },
    tokens,
    passwords,
    license: told,
    async start() {
      await loadRevocations(shards, ended)
      mail?.wake()
    },
    async stop() {
      await mail?.stop()
      await passwords.close()
    },
  }
}

async function loadRevocations(shards: Shards, ended: Revocations): Promise<void> {
  for (const outcome of await shards.askAll({ kind: 'revocationsList' })) {
    if (outcome.kind !== 'revocations')
      throw new Error(`What has ended could not be read: ${JSON.stringify(outcome)}`)
    for (const { namespace, ...one } of outcome.rows) ended.add(namespace, one)
  }
}

async function epochsOf(shards: Shards, { id, agent }: Namespace): Promise<KeyEpochs> {
  const outcome = await shards.ask(agent, {
    kind: 'authLookup',
    agent,
    namespace: id,
    lookup: { kind: 'keyEpochs' },
  })
  if (outcome.kind === 'auth' && outcome.answer.kind === 'keyEpochs') return outcome.answer
  throw new Error(`The signing keys of a namespace could not be read: ${outcome.kind}`)
}

/** The sender of mail, if a mail server is set: its library is a quarter of what a start reads otherwise. */
async function mailSender(
  { mail }: Config,
  { shards, log }: AuthSurroundings,
): Promise<MailSender | undefined> {
  if (mail === undefined) return undefined
  const { smtpServer } = await import('../outbound/mail.js')
  return new MailSender({
    outbox: new ShardedOutbox(shards),
    server: smtpServer(mail),
    linkBaseUrl: mail.linkBaseUrl,
    clock: systemClock,
    random: pooledRandom(),
    log,
  })
}

/** Passkeys, if they are configured: their libraries take a quarter of a second to load. */
async function passkeyCeremonies({ passkeys }: Config): Promise<PasskeyCeremonies | undefined> {
  if (passkeys === undefined) return undefined
  const { PasskeyCeremony } = await import('../auth/passkey-ceremony.js')
  return new PasskeyCeremony(passkeys)
}

/** The license in force, and what the audit strand says about it; logs a line if there is none. */
async function validLicense(
  { auth, dataDir }: Config,
  log: Logger,
): Promise<{ license: License | undefined; told: LicenseTold }> {
  const publicKey = auth.licensePublicKey ?? authorityPublicKey(dataDir)
  const none = { licensee: null, expires_at_ms: null, features: [], authority: publicKey ?? null }
  const standing = await licenseStanding({ licenseKey: auth.licenseKey, publicKey, nowMs: systemClock() })
  if (standing.state !== 'valid') {
    const { state: reason, detail } = standing
    log.warn({ reason, detail }, 'the auth add-on has no valid license: its routes answer 402')
    return { license: undefined, told: { ...none, state: standing.state } }
  }
  const { license } = standing
  const { licensee, expiresAtMs, features } = license
  return {
    license,
    told: { ...none, state: 'valid', licensee, expires_at_ms: expiresAtMs, features },
  }
}
