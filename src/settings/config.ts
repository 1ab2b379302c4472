import { resolve } from 'node:path'
import {
  type AuthConfig,
  type MailConfig,
  authSettings,
  authWarnings,
  mailFaults,
  readAuth,
  readMail,
  sessionFaults,
} from './auth.js'
import type { RelyingParty } from '../auth/passkey.js'
import { limits } from '../base/limits/limits.js'
import { logLevels } from '../base/log.js'
import { unknownNames } from './nearest-name.js'
import { linkWarnings, openModes } from './open-modes.js'
import { type OauthConfig, oauthFaults, oauthSettings, oauthWarnings, readOauth } from './oauth.js'
import { passkeyFaults, passkeySettings, passkeyWarnings, readPasskeys } from './passkeys.js'
import { type ClusterConfig, clusterFaults, clusterSettings, readCluster } from './cluster.js'
import { connectionSettings, consoleSettings } from './connections.js'
import { directorySettings, secretSettings } from './directories.js'
import { defaultFronts, frontSettings, shardSettings } from './threads.js'
import {
  describeGiven,
  type Environment,
  type Setting,
  type SettingFault,
  setting,
  type ShownSetting,
  shownSettings,
  type ValueOf,
  type SettingValues,
  valuesOf,
} from './setting.js'
import * as parsers from './parsers.js'
import { pairFaults, postgresFileFaults } from './tls-files.js'

const megabyte = 1_048_576

/**
 * Settings that the configuration has under the same names, before and after those of a cluster in
 * docs/config.md.
 */
const settingsBefore = {
  host: setting({
    name: 'SERVICE_HOST',
    default: '127.0.0.1',
    description: 'The address to listen on. `0.0.0.0` or `::` accepts requests from other machines.',
    allowed: 'an IP address or a host name, without scheme, port and brackets',
    parse: parsers.host,
  }),
  port: setting({
    name: 'SERVICE_PORT',
    default: 8787,
    description: 'The TCP port to listen on; 0 is any free port.',
    allowed: 'an integer from 0 to 65535',
    parse: parsers.integer(0, 65_535),
  }),
  tlsCertFile: setting<string | undefined>({
    name: 'SERVICE_TLS_CERT_FILE',
    default: undefined,
    description: 'The certificate chain, PEM. Enables TLS together with SERVICE_TLS_KEY_FILE.',
    allowed:
      'the path of a PEM file, the certificate of this server first, together with SERVICE_TLS_KEY_FILE',
    parse: parsers.readableFile,
  }),
  tlsKeyFile: setting<string | undefined>({
    name: 'SERVICE_TLS_KEY_FILE',
    default: undefined,
    description: 'The private key of the certificate, PEM.',
    allowed:
      'the path of a PEM file with the unencrypted key of the certificate, together with SERVICE_TLS_CERT_FILE',
    parse: parsers.readableFile,
  }),
  ...directorySettings,
  ...shardSettings,
  ...frontSettings,
} as const
const settingsAfter = {
  ...connectionSettings,
  ...consoleSettings,
  agentId: setting({
    name: 'SERVICE_AGENT_ID',
    default: 'default',
    description: 'The default agent, created at the first start.',
    allowed: '1 to 128 letters, digits, _ . and -; must not begin with . or -',
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
    description: 'The largest size of the body of one record in canonical form.',
    allowed: `an integer from 1 to ${limits.recordBytesMax}`,
    parse: parsers.integer(1, limits.recordBytesMax),
  }),
  corsOrigins: setting<readonly string[]>({
    name: 'SERVICE_CORS_ORIGINS',
    default: [],
    description: 'Web origins whose pages may call the server from a browser.',
    allowed: 'exact origins such as https://app.example.com, separated by commas; * is refused',
    parse: parsers.list(parsers.isOrigin),
  }),
  signing: setting<'record' | 'group'>({
    name: 'SERVICE_SIGNING',
    default: 'record',
    description: 'Whether each record is signed, or only the last of the records of an agent in one commit.',
    allowed: 'record or group',
    parse: parsers.oneOf(['record', 'group']),
  }),
  environment: setting<'development' | 'production'>({
    name: 'SERVICE_ENV',
    default: 'development',
    description:
      'The environment of the server. `production` refuses settings that are for development only.',
    allowed: 'development or production',
    parse: parsers.oneOf(['development', 'production']),
  }),
  logLevel: setting<(typeof logLevels)[number]>({
    name: 'SERVICE_LOG_LEVEL',
    default: 'info',
    description: 'The least severe level that is logged. The log is JSON lines on standard error.',
    allowed: logLevels.join(', '),
    parse: parsers.oneOf(logLevels),
  }),
  freeBytesMin: setting({
    name: 'SERVICE_MIN_FREE_BYTES',
    default: 256 * megabyte,
    unit: 'bytes',
    description: 'Free space of the data disk below which the server refuses writes; 0 disables the check.',
    allowed: 'an integer of at least 0',
    parse: parsers.integer(0, Number.MAX_SAFE_INTEGER),
  }),
  recordCacheBytes: setting({
    name: 'SERVICE_RECORD_CACHE_BYTES',
    default: 256 * megabyte,
    unit: 'bytes',
    description: 'Size of the cache of records that are read by their hash; 0 disables the cache.',
    allowed: 'an integer of at least 0',
    parse: parsers.integer(0, Number.MAX_SAFE_INTEGER),
  }),
  streamsPerPrincipal: setting({
    name: 'SERVICE_STREAMS_PER_PRINCIPAL',
    default: 1_000,
    unit: 'streams',
    description: 'Open streams of one key or user, and unused tickets for them.',
    allowed: `an integer from 1 to ${limits.streamsMax}`,
    parse: parsers.integer(1, limits.streamsMax),
  }),
  governedAutoApproveSecs: setting({
    name: 'SERVICE_GOVERNED_AUTO_APPROVE_SECS',
    default: 60,
    unit: 'seconds',
    description:
      'How long a mutation in the zone governed can be rejected before it is applied automatically.',
    allowed: 'an integer from 1 to 604800',
    parse: parsers.integer(1, 604_800),
  }),
  logIntervalSecs: setting({
    name: 'SERVICE_LOG_INTERVAL_SECS',
    default: 10,
    unit: 'seconds',
    description: 'How often the heads of changed strands are written to the server log; 0 disables the log.',
    allowed: 'an integer from 0 to 86400',
    parse: parsers.integer(0, 86_400),
  }),
  ingestBadLinesMax: setting({
    name: 'SERVICE_INGEST_BAD_LINES_MAX',
    default: limits.ingestBadLinesDefault,
    unit: 'lines',
    description:
      'Refused lines after which an ingest upload is aborted, unless it is an OTLP request; 0 disables the limit.',
    allowed: 'an integer of at least 0',
    parse: parsers.integer(0, Number.MAX_SAFE_INTEGER),
  }),
  ingestPostgresUrl: setting<string | undefined>({
    name: 'SERVICE_INGEST_POSTGRES_URL',
    default: undefined,
    description:
      'The PostgreSQL database to which ingested records are copied. List all of its servers, separated by commas: the ' +
      'server finds the primary.',
    allowed: 'a postgres:// or postgresql:// connection URI of PostgreSQL',
    secret: true,
    parse: parsers.postgresUrl,
  }),
} as const

/** All settings of the server, the source of docs/config.md. */
export const settings = {
  ...settingsBefore,
  ...clusterSettings,
  ...settingsAfter,
  ...authSettings,
  ...oauthSettings,
  ...passkeySettings,
} as const

/** Settings of earlier versions, with what to do instead: a server with one of them does not start. */
export const removedSettings: Readonly<Record<string, string>> = {
  SERVICE_DATA_OPEN:
    'nothing: every data route needs a key. Remove the setting and send the root key, which the first start ' +
    'makes and shows',
}

/** Settings that the configuration has in a different form. */
type Converted = 'tlsCertFile' | 'tlsKeyFile' | 'masterSeedFile' | 'fronts'

/** The configuration of a server, frozen. Paths are absolute, address ranges valid. */
export interface Config extends Omit<SettingValues<typeof settingsBefore & typeof settingsAfter>, Converted> {
  /** Absolute paths; absent without TLS. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string }
  /** Threads that accept requests. */
  readonly fronts: number
  readonly shown: readonly ShownSetting[]
  readonly auth: AuthConfig
  /** Absent if mail is off. */
  readonly mail?: MailConfig
  /** Absent if OAuth is not configured. */
  readonly oauth?: OauthConfig
  /** Absent on a server without a cluster. */
  readonly cluster?: ClusterConfig
  /** Absent if passkeys are not configured. */
  readonly passkeys?: RelyingParty
}

/** The result of `readConfig`. Warnings are sentences without a full stop. */
export type ConfigReading =
  | { ok: true; config: Config; warnings: string[] }
  | { ok: false; faults: SettingFault[]; warnings: string[] }

/**
 * Reads the settings of this process.
 * @param given settings by name that take precedence over the environment, from flags; an empty one is a
 * fault, because a command with `--data-dir "$DIR"` must not use another directory if the variable is not set
 * @param unneeded names of settings that may be missing although others require them
 */
export function readProcessConfig(given: Environment = {}, unneeded: readonly string[] = []): ConfigReading {
  const empty = Object.values(settings).filter(({ name }) => given[name] === '')
  if (empty.length > 0) {
    const faults = empty.map(({ name, allowed }) => ({ name, given: describeGiven(undefined, ''), allowed }))
    return { ok: false, faults, warnings: [] }
  }
  return readConfig({ ...process.env, ...given }, unneeded)
}

/**
 * Reads the settings of an environment, and the files that they name. An empty variable is not set: templates
 * of compose files and unit files leave such variables behind.
 * @returns the configuration, or all faults
 */
export function readConfig(given: Environment, unneeded: readonly string[] = []): ConfigReading {
  const env: Environment = Object.fromEntries(Object.entries(given).filter(([, text]) => text !== ''))
  const faults: SettingFault[] = []
  const config = parseAll(env, faults)
  faults.push(...crossFaults(env, config).filter(({ name }) => !unneeded.includes(name)))
  const known = [...Object.values(settings).map(({ name }) => name), ...Object.keys(removedSettings)]
  const warnings = unknownNames(env, known)
  if (faults.length > 0) return { ok: false, faults, warnings }
  warnings.push(...openModes(config), ...linkWarnings(config), ...authWarnings(config))
  if (config.auth.enabled) warnings.push(...oauthWarnings(config.oauth, config.environment))
  warnings.push(...passkeyWarnings(env))
  return { ok: true, config: Object.freeze(config), warnings }
}

/** One line for each fault, for `check` and `serve`. */
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
  const before = valuesOf(settingsBefore, value)
  const cluster = readCluster(value)
  const { masterSeedFile, ...after } = valuesOf(settingsAfter, value)
  const { tlsCertFile: certFile, tlsKeyFile: keyFile, dataDir, fronts, ...same } = before
  const masterSeed = after.masterSeed ?? masterSeedFile
  const auth = readAuth(value)
  const mail = readMail(value)
  const oauth = readOauth(value)
  const passkeys = readPasskeys(value)
  return {
    ...same,
    ...after,
    dataDir: resolve(dataDir),
    fronts: fronts ?? defaultFronts(),
    ...(certFile !== undefined && keyFile !== undefined && { tls: Object.freeze({ certFile, keyFile }) }),
    ...(masterSeed !== undefined && { masterSeed }),
    shown: shownSettings(Object.values(settings), env),
    auth,
    ...(mail !== undefined && { mail }),
    ...(oauth !== undefined && { oauth }),
    ...(passkeys !== undefined && { passkeys }),
    ...(cluster !== undefined && { cluster }),
  }
}

/** Faults of settings that contradict each other. */
function crossFaults(env: Environment, config: Config): SettingFault[] {
  const faults: SettingFault[] = []
  const { tlsCertFile, tlsKeyFile, masterSeed, masterSeedFile } = settings
  const isSet = (from: { name: string }) => env[from.name] !== undefined
  const addFault = (from: { name: string; allowed: string }, given: string) =>
    faults.push({ name: from.name, given, allowed: from.allowed })
  if (isSet(tlsCertFile) && !isSet(tlsKeyFile)) addFault(tlsKeyFile, 'nothing')
  if (isSet(tlsKeyFile) && !isSet(tlsCertFile)) addFault(tlsCertFile, 'nothing')
  if (config.tls !== undefined) {
    const { tls } = config
    for (const { of, fault } of pairFaults(tls)) {
      const [from, path] = of === 'cert' ? [tlsCertFile, tls.certFile] : [tlsKeyFile, tls.keyFile]
      addFault(from, `${JSON.stringify(path)}, ${fault}`)
    }
  }
  if (isSet(masterSeed) && isSet(masterSeedFile)) addFault(masterSeedFile, `both this and ${masterSeed.name}`)
  for (const [name, allowed] of Object.entries(removedSettings)) {
    const given = env[name]
    if (given !== undefined) faults.push({ name, given: describeGiven(undefined, given), allowed })
  }
  faults.push(
    ...sessionFaults(config.auth),
    ...mailFaults(env),
    ...oauthFaults(env, config.environment),
    ...passkeyFaults(env),
  )
  faults.push(...clusterFaults(env))
  for (const { name } of [settings.ingestPostgresUrl, settings.clusterUrl])
    faults.push(...postgresFileFaults(name, env[name]))
  return faults
}
