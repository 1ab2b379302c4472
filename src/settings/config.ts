import { resolve } from 'node:path'
import {
  type AuthConfig,
  type MailConfig,
  authSettings,
  authWarnings,
  mailFaults,
  readAuth,
  readMail,
} from './auth.js'
import type { RelyingParty } from '../auth/passkey.js'
import { limits } from '../base/limits/limits.js'
import { logLevels } from '../base/log.js'
import { unknownNames } from './nearest-name.js'
import { linkWarnings, openModes } from './open-modes.js'
import { type OauthConfig, oauthFaults, oauthSettings, oauthWarnings, readOauth } from './oauth.js'
import { passkeyFaults, passkeySettings, passkeyWarnings, readPasskeys } from './passkeys.js'
import { type ClusterConfig, clusterFaults, clusterSettings, readCluster } from './cluster.js'
import { connectionSettings } from './connections.js'
import { consoleSettings } from './console.js'
import { directorySettings } from './directories.js'
import { frontsByDefault, frontSettings, type HttpEngineChoice } from './fronts.js'
import { secretSettings } from './secrets.js'
import { shardSettings } from './shards.js'
import { shownSettings, type ShownSetting } from './shown.js'
import * as parsers from './parsers.js'
import {
  describeGiven,
  type Environment,
  type Setting,
  type SettingFault,
  type ValueOf,
  setting,
} from './setting.js'

const megabyte = 1_048_576

/** Every setting of the server; docs/config.md is made from this table. */
export const settings = {
  host: setting({
    name: 'SERVICE_HOST',
    default: '127.0.0.1',
    description: 'The address to listen on. `0.0.0.0` or `::` takes requests from other machines.',
    allowed: 'an IP address or a host name, without scheme, port and brackets',
    parse: parsers.host,
  }),
  port: setting({
    name: 'SERVICE_PORT',
    default: 8787,
    description: 'The TCP port to listen on; 0 takes any free one.',
    allowed: 'an integer from 0 to 65535',
    parse: parsers.integer(0, 65_535),
  }),
  tlsCertFile: setting<string | undefined>({
    name: 'SERVICE_TLS_CERT_FILE',
    default: undefined,
    description: 'The certificate chain, PEM. With SERVICE_TLS_KEY_FILE it switches to TLS.',
    allowed: 'the path of a file that can be read, together with SERVICE_TLS_KEY_FILE',
    parse: parsers.readableFile,
  }),
  tlsKeyFile: setting<string | undefined>({
    name: 'SERVICE_TLS_KEY_FILE',
    default: undefined,
    description: 'The private key of the certificate, PEM.',
    allowed: 'the path of a file that can be read, together with SERVICE_TLS_CERT_FILE',
    parse: parsers.readableFile,
  }),
  ...directorySettings,
  ...shardSettings,
  ...frontSettings,
  ...clusterSettings,
  ...connectionSettings,
  ...consoleSettings,
  agentId: setting({
    name: 'SERVICE_AGENT_ID',
    default: 'default',
    description: 'The default agent, created at the first start.',
    allowed: '1 to 128 of letters, digits, _ . and -, the first neither . nor -',
    parse: parsers.matching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/),
  }),
  ...secretSettings,
  shutdownTimeoutSecs: setting({
    name: 'SERVICE_SHUTDOWN_TIMEOUT_SECS',
    default: 10,
    unit: 'seconds',
    description: 'How long requests in flight may take to finish after SIGTERM, SIGINT or SIGHUP.',
    allowed: 'an integer from 1 to 3600',
    parse: parsers.integer(1, 3600),
  }),
  recordBytesMax: setting({
    name: 'SERVICE_RECORD_MAX_BYTES',
    default: limits.recordBytesDefault,
    unit: 'bytes',
    description: "The most that one record's body may take in canonical form.",
    allowed: `an integer from 1 to ${limits.recordBytesMax}`,
    parse: parsers.integer(1, limits.recordBytesMax),
  }),
  corsOrigins: setting<readonly string[]>({
    name: 'SERVICE_CORS_ORIGINS',
    default: [],
    description: 'Web origins whose pages may call the server from a browser.',
    allowed: 'exact origins as https://app.example.com, separated by commas; * is refused',
    parse: parsers.list(parsers.isOrigin),
  }),
  signing: setting<'record' | 'group'>({
    name: 'SERVICE_SIGNING',
    default: 'record',
    description: "Whether each record is signed, or of one agent's records committed together only the last.",
    allowed: 'record or group',
    parse: parsers.oneOf(['record', 'group']),
  }),
  dataOpen: setting({
    name: 'SERVICE_DATA_OPEN',
    default: false,
    description: 'Drops the credential check on data routes, for development only.',
    allowed: 'true or false; true only where SERVICE_ENV is development',
    parse: parsers.boolean,
  }),
  environment: setting<'development' | 'production'>({
    name: 'SERVICE_ENV',
    default: 'development',
    description: 'Where the server runs. `production` refuses what is for development only.',
    allowed: 'development or production',
    parse: parsers.oneOf(['development', 'production']),
  }),
  logLevel: setting<(typeof logLevels)[number]>({
    name: 'SERVICE_LOG_LEVEL',
    default: 'info',
    description: 'The least severe level that is logged, as JSON lines on standard error.',
    allowed: logLevels.join(', '),
    parse: parsers.oneOf(logLevels),
  }),
  freeBytesMin: setting({
    name: 'SERVICE_MIN_FREE_BYTES',
    default: 256 * megabyte,
    unit: 'bytes',
    description: 'Free space of the data disk below which the server only reads; 0 is off.',
    allowed: 'an integer from 0 up',
    parse: parsers.integer(0, Number.MAX_SAFE_INTEGER),
  }),
  recordCacheBytes: setting({
    name: 'SERVICE_RECORD_CACHE_BYTES',
    default: 256 * megabyte,
    unit: 'bytes',
    description: 'Memory for records that were read by their hash, to be read again; 0 is off.',
    allowed: 'an integer from 0 up',
    parse: parsers.integer(0, Number.MAX_SAFE_INTEGER),
  }),
  streamsPerPrincipal: setting({
    name: 'SERVICE_STREAMS_PER_PRINCIPAL',
    default: 1_000,
    unit: 'streams',
    description: 'Streams that one key or user can have open at once, and unused tickets for them.',
    allowed: `an integer from 1 to ${limits.streamsMax}`,
    parse: parsers.integer(1, limits.streamsMax),
  }),
  governedAutoApproveSecs: setting({
    name: 'SERVICE_GOVERNED_AUTO_APPROVE_SECS',
    default: 60,
    unit: 'seconds',
    description: 'How long a mutation in zone governed waits, and can be rejected, before it applies itself.',
    allowed: 'an integer from 1 to 604800',
    parse: parsers.integer(1, 604_800),
  }),
  logIntervalSecs: setting({
    name: 'SERVICE_LOG_INTERVAL_SECS',
    default: 10,
    unit: 'seconds',
    description: 'How often the heads of strands that moved are taken into the server log; 0 is off.',
    allowed: 'an integer from 0 to 86400',
    parse: parsers.integer(0, 86_400),
  }),
  ingestBadLinesMax: setting({
    name: 'SERVICE_INGEST_BAD_LINES_MAX',
    default: limits.ingestBadLinesDefault,
    unit: 'lines',
    description: 'Refused lines after which one ingest upload is ended; 0 is off.',
    allowed: 'an integer from 0 up',
    parse: parsers.integer(0, Number.MAX_SAFE_INTEGER),
  }),
  ingestPostgresUrl: setting<string | undefined>({
    name: 'SERVICE_INGEST_POSTGRES_URL',
    default: undefined,
    description:
      'The PostgreSQL database that ingested records are copied to, with all its servers between commas: the one that takes ' +
      'writes is found among them. Unset: they are copied to none.',
    allowed: 'a postgres:// or postgresql:// address as PostgreSQL clients take it',
    secret: true,
    parse: parsers.postgresUrl,
  }),
  ...authSettings,
  ...oauthSettings,
  ...passkeySettings,
} as const

/** The settings of one server, frozen. Paths are absolute. */
export interface Config {
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  /** Absolute paths; absent without TLS. */
  readonly httpEngine: HttpEngineChoice
  readonly tls?: { readonly certFile: string; readonly keyFile: string }
  readonly dataDir: string
  /** Absolute. Absent: logs are beside their stores. */
  readonly logDir?: string
  /** Absent: that of the data directory, or the cores when it is made. */
  readonly shards?: number
  readonly agentId: string
  /** 32 bytes, never logged. Absent: the data directory's own. */
  readonly masterSeed?: Buffer
  /** Never logged. Absent: the data directory's own. */
  readonly rootApiKey?: string
  /** Threads that take requests. */
  readonly fronts: number
  /** How long a shard's thread may make no progress while it has work; 0 is off. */
  readonly shardSilenceSecs: number
  /** Absent: as many as the limit of open files allows. */
  readonly connectionsMax?: number
  readonly shutdownTimeoutSecs: number
  readonly recordBytesMax: number
  readonly streamsPerPrincipal: number
  /** How long a mutation in zone governed waits before it applies itself. */
  readonly governedAutoApproveSecs: number
  /** Bytes; 0 is off. */
  readonly recordCacheBytes: number
  /** Between searches for strand heads that moved; 0 is off. */
  readonly logIntervalSecs: number
  /** Per second and client address; 0 is off. */
  readonly rateLimitRps: number
  readonly rateLimitBurst: number
  /** CIDR texts, each valid: addresses that the global limit does not count. */
  readonly rateLimitExempt: readonly string[]
  /** CIDR texts, each valid. */
  readonly trustedProxies: readonly string[]
  readonly corsOrigins: readonly string[]
  /** Host names, or `*`. */
  readonly webhookOrigins: readonly string[]
  readonly console: boolean
  readonly shown: readonly ShownSetting[]
  readonly signing: 'record' | 'group'
  readonly dataOpen: boolean
  readonly environment: 'development' | 'production'
  readonly logLevel: (typeof logLevels)[number]
  /** 0 is off. */
  readonly freeBytesMin: number
  /** Refused lines after which an upload is ended; 0 is off. */
  readonly ingestBadLinesMax: number
  /** Contains a password, never logged. Absent: ingested records are not copied anywhere. */
  readonly ingestPostgresUrl?: string
  readonly auth: AuthConfig
  /** Absent: mail is off. */
  readonly mail?: MailConfig
  /** Absent: nothing of it is set. */
  readonly oauth?: OauthConfig
  /** Absent: this server is on its own. */
  readonly cluster?: ClusterConfig
  /** Absent: passkeys are not configured. */
  readonly passkeys?: RelyingParty
}

/** What `readConfig` answers. Warnings are sentences without a full stop. */
export type ConfigReading =
  | { ok: true; config: Config; warnings: string[] }
  | { ok: false; faults: SettingFault[]; warnings: string[] }

/**
 * Reads the settings of this process.
 * @param given settings by name that take precedence over its environment
 * @param unneeded names of settings that may be missing, though others ask for them
 */
export function readProcessConfig(given: Environment = {}, unneeded: readonly string[] = []): ConfigReading {
  return readConfig({ ...process.env, ...given }, unneeded)
}

/**
 * Makes the configuration of an environment, or names every wrong setting at once. Reads the files that settings name,
 * and nothing else.
 */
export function readConfig(env: Environment, unneeded: readonly string[] = []): ConfigReading {
  const faults: SettingFault[] = []
  const config = parseAll(env, faults)
  faults.push(...crossFaults(env, config).filter(({ name }) => !unneeded.includes(name)))
  const warnings = unknownNames(
    env,
    Object.values(settings).map(({ name }) => name),
  )
  if (faults.length > 0) return { ok: false, faults, warnings }
  warnings.push(...openModes(config), ...linkWarnings(config), ...authWarnings(config))
  if (config.auth.enabled) warnings.push(...oauthWarnings(config.oauth, config.environment))
  warnings.push(...passkeyWarnings(env))
  return { ok: true, config: Object.freeze(config), warnings }
}

/** One line for each fault, as `check` and `serve` print them. */
export function describeFaults(faults: readonly SettingFault[]): string {
  return faults.map(({ name, given, allowed }) => `${name}: given ${given}, allowed: ${allowed}\n`).join('')
}

function parseAll(env: Environment, faults: SettingFault[]): Config {
  const value: ValueOf = <T>(from: Setting<T>): T => {
    const text = env[from.name]
    if (text === undefined) return from.default
    const parsed = from.parse(text)
    if (parsed !== undefined) return parsed
    faults.push({ name: from.name, given: describeGiven(from.secret, text), allowed: from.allowed })
    return from.default
  }
  const certFile = value(settings.tlsCertFile)
  const keyFile = value(settings.tlsKeyFile)
  const logDir = value(settings.logDir)
  const shards = value(settings.shards)
  const connectionsMax = value(settings.connectionsMax)
  const masterSeedGiven = value(settings.masterSeed)
  const masterSeedOfFile = value(settings.masterSeedFile)
  const masterSeed = masterSeedGiven ?? masterSeedOfFile
  const rootApiKey = value(settings.rootApiKey)
  const mail = readMail(value)
  const ingestPostgresUrl = value(settings.ingestPostgresUrl)
  const oauth = readOauth(value)
  const passkeys = readPasskeys(value)
  const cluster = readCluster(value)
  return {
    host: value(settings.host),
    port: value(settings.port),
    httpEngine: value(settings.httpEngine),
    ...(certFile !== undefined && keyFile !== undefined && { tls: Object.freeze({ certFile, keyFile }) }),
    dataDir: resolve(value(settings.dataDir)),
    ...(logDir !== undefined && { logDir }),
    ...(shards !== undefined && { shards }),
    ...(connectionsMax !== undefined && { connectionsMax }),
    agentId: value(settings.agentId),
    ...(masterSeed !== undefined && { masterSeed }),
    ...(rootApiKey !== undefined && { rootApiKey }),
    fronts: value(settings.fronts) ?? frontsByDefault(),
    shardSilenceSecs: value(settings.shardSilenceSecs),
    shutdownTimeoutSecs: value(settings.shutdownTimeoutSecs),
    recordBytesMax: value(settings.recordBytesMax),
    streamsPerPrincipal: value(settings.streamsPerPrincipal),
    governedAutoApproveSecs: value(settings.governedAutoApproveSecs),
    recordCacheBytes: value(settings.recordCacheBytes),
    logIntervalSecs: value(settings.logIntervalSecs),
    rateLimitRps: value(settings.rateLimitRps),
    rateLimitBurst: value(settings.rateLimitBurst),
    rateLimitExempt: value(settings.rateLimitExempt),
    trustedProxies: value(settings.trustedProxies),
    corsOrigins: value(settings.corsOrigins),
    webhookOrigins: value(settings.webhookOrigins),
    console: value(settings.console),
    shown: shownSettings(Object.values(settings), env),
    signing: value(settings.signing),
    dataOpen: value(settings.dataOpen),
    environment: value(settings.environment),
    logLevel: value(settings.logLevel),
    freeBytesMin: value(settings.freeBytesMin),
    ingestBadLinesMax: value(settings.ingestBadLinesMax),
    ...(ingestPostgresUrl !== undefined && { ingestPostgresUrl }),
    auth: readAuth(value),
    ...(mail !== undefined && { mail }),
    ...(oauth !== undefined && { oauth }),
    ...(passkeys !== undefined && { passkeys }),
    ...(cluster !== undefined && { cluster }),
  }
}

/** Faults of settings that are valid alone but not together. */
function crossFaults(env: Environment, config: Config): SettingFault[] {
  const faults: SettingFault[] = []
  const { tlsCertFile, tlsKeyFile, masterSeed, masterSeedFile, dataOpen } = settings
  const set = (from: { name: string }) => env[from.name] !== undefined
  const blame = (from: { name: string; allowed: string }, given: string) =>
    faults.push({ name: from.name, given, allowed: from.allowed })
  if (set(tlsCertFile) && !set(tlsKeyFile)) blame(tlsKeyFile, 'nothing')
  if (set(tlsKeyFile) && !set(tlsCertFile)) blame(tlsCertFile, 'nothing')
  if (set(masterSeed) && set(masterSeedFile)) blame(masterSeedFile, `both it and ${masterSeed.name}`)
  if (config.dataOpen && config.environment === 'production') blame(dataOpen, 'true in production')
  faults.push(...mailFaults(env), ...oauthFaults(env, config.environment), ...passkeyFaults(env))
  faults.push(...clusterFaults(env))
  return faults
}
