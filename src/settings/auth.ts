import * as parsers from './parsers.js'
import { type Environment, type SettingFault, type ValueOf, setting, valuesOf } from './setting.js'

const yearSecs = 31_536_000

/** The settings of the auth add-on and its license (docs/SIGN-IN.md). */
const ownSettings = {
  authEnabled: setting({
    name: 'SERVICE_AUTH_ENABLED',
    default: false,
    description: 'Enables the auth add-on, which also needs SERVICE_LICENSE_KEY.',
    allowed: 'true or false',
    parse: parsers.boolean,
  }),
  licenseKey: setting<string | undefined>({
    name: 'SERVICE_LICENSE_KEY',
    default: undefined,
    description: 'The license of the auth add-on. Without a valid one, every auth route answers 402.',
    allowed: 'the output of strandfast license issue',
    secret: true,
    // Not checked here: with an expired license, the server still serves data, and auth routes answer 402.
    parse: (text) => text.trim(),
  }),
  licensePublicKey: setting<string | undefined>({
    name: 'SERVICE_LICENSE_PUBLIC_KEY',
    default: undefined,
    defaultText:
      'the key of the license authority in the data directory, which strandfast license issue creates',
    description: 'The Ed25519 public key of the license authority, with which licenses are verified.',
    allowed: '64 hex digits',
    parse: parsers.publicKey,
  }),
  authIssuer: setting({
    name: 'SERVICE_AUTH_ISSUER',
    default: 'strandfast',
    description:
      'The `iss` of the tokens, by which other services identify the issuer: preferably the public address of the server. ' +
      'A change invalidates all tokens.',
    allowed: '1 to 256 visible ASCII characters without quotes and backslashes',
    parse: parsers.matching(/^(?!.*["'\\])[\x21-\x7e]{1,256}$/),
  }),
  jwtExpirySecs: setting({
    name: 'SERVICE_AUTH_JWT_EXPIRY_SECS',
    default: 3600,
    unit: 'seconds',
    description: 'How long a token is valid.',
    allowed: `an integer from 1 to ${yearSecs}`,
    parse: parsers.integer(1, yearSecs),
  }),
  magicLinkExpirySecs: setting({
    name: 'SERVICE_AUTH_MAGIC_LINK_EXPIRY_SECS',
    default: 900,
    unit: 'seconds',
    description: 'How long a magic link is valid.',
    allowed: `an integer from 1 to ${yearSecs}`,
    parse: parsers.integer(1, yearSecs),
  }),
  refreshTokenExpirySecs: setting({
    name: 'SERVICE_AUTH_REFRESH_TOKEN_EXPIRY_SECS',
    default: 2_592_000,
    unit: 'seconds',
    description: 'How long a refresh token is valid.',
    allowed: `an integer from 1 to ${yearSecs * 10}, at least SERVICE_AUTH_JWT_EXPIRY_SECS`,
    parse: parsers.integer(1, yearSecs * 10),
  }),
  maxLoginAttempts: setting({
    name: 'SERVICE_AUTH_MAX_LOGIN_ATTEMPTS',
    default: 5,
    unit: 'failed logins',
    description: 'Failed password logins after which an e-mail is locked.',
    allowed: 'an integer from 1 to 1000',
    parse: parsers.integer(1, 1000),
  }),
  lockoutDurationSecs: setting({
    name: 'SERVICE_AUTH_LOCKOUT_DURATION_SECS',
    default: 900,
    unit: 'seconds',
    description: 'How long an e-mail stays locked.',
    allowed: `an integer from 1 to ${yearSecs}`,
    parse: parsers.integer(1, yearSecs),
  }),
  metadataBytesMax: setting({
    name: 'SERVICE_AUTH_METADATA_MAX_BYTES',
    default: 4096,
    unit: 'bytes',
    description:
      'The largest size of app_metadata and user_metadata of one user together. Tokens contain both.',
    allowed: 'an integer from 16 to 8192',
    // A token must fit into a header block of 16 KiB.
    parse: parsers.integer(16, 8192),
  }),
  requireEmailVerify: setting({
    name: 'SERVICE_AUTH_REQUIRE_EMAIL_VERIFY',
    default: false,
    description: 'Whether the e-mail of a user must be verified before a sign-in by password.',
    allowed: 'true or false',
    parse: parsers.boolean,
  }),
  authRateLimitRps: setting({
    name: 'SERVICE_AUTH_RATE_LIMIT_RPS',
    default: 10,
    unit: 'requests per second',
    description:
      'Requests per client address on auth routes, in addition to SERVICE_RATE_LIMIT_RPS; 0 disables the limit.',
    allowed: 'an integer from 0 to 1000000',
    parse: parsers.integer(0, 1_000_000),
  }),
  authRateLimitBurst: setting({
    name: 'SERVICE_AUTH_RATE_LIMIT_BURST',
    default: 20,
    unit: 'requests',
    description: 'Burst of one client address on auth routes; 0 disables the limit.',
    allowed: 'an integer from 0 to 1000000',
    parse: parsers.integer(0, 1_000_000),
  }),
  passwordBlocklist: setting({
    name: 'SERVICE_AUTH_PASSWORD_BLOCKLIST',
    default: true,
    description: 'Whether common passwords, which are on a list in the server, are refused.',
    allowed: 'true or false',
    parse: parsers.boolean,
  }),
} as const

const mailSettings = {
  mailEnabled: setting({
    name: 'SERVICE_MAIL_ENABLED',
    default: false,
    description:
      'Whether the server sends mail. If it does not, answers to the root key contain the tokens of links; on a loopback ' +
      'address without `SERVICE_ENV=production`, answers to requests of this machine contain those of magic links and ' +
      'verify links.',
    allowed:
      'true or false; true only with SERVICE_MAIL_SMTP_URL, SERVICE_MAIL_FROM and SERVICE_MAIL_LINK_BASE_URL',
    parse: parsers.boolean,
  }),
  mailSmtpUrl: setting<string | undefined>({
    name: 'SERVICE_MAIL_SMTP_URL',
    default: undefined,
    description:
      'The mail server with its credentials. `smtps:` is TLS; `smtp:` uses STARTTLS if the server offers it, and ' +
      'requires it with `?requireTLS=true`.',
    allowed: 'a URL such as smtps://user:password@mail.example.com, together with SERVICE_MAIL_ENABLED',
    secret: true,
    parse: parsers.smtpUrl,
  }),
  mailFrom: setting<string | undefined>({
    name: 'SERVICE_MAIL_FROM',
    default: undefined,
    description: 'The sender of all mail.',
    allowed: 'an address such as no-reply@example.com or Name <no-reply@example.com>',
    parse: parsers.mailAddress,
  }),
  mailLinkBaseUrl: setting<string | undefined>({
    name: 'SERVICE_MAIL_LINK_BASE_URL',
    default: undefined,
    description:
      'The base address of the pages that mails link to: `magic-link`, `verify-email` and `reset-password`, each opened ' +
      'with `?token=`.',
    allowed: 'a URL such as https://app.example.com/account, without query, fragment and credentials',
    parse: parsers.webBase,
  }),
} as const

export const authSettings = { ...ownSettings, ...mailSettings } as const

/** The settings of the auth add-on, frozen. `licenseKey` is not verified yet, and never logged. */
export type AuthConfig = ReturnType<typeof readAuth>

export interface MailConfig {
  /** Contains credentials; never logged. */
  readonly smtpUrl: string
  readonly from: string
  readonly linkBaseUrl: string
}

export function readAuth(value: ValueOf) {
  const {
    authEnabled: enabled,
    licenseKey,
    authIssuer: issuer,
    authRateLimitRps: rateLimitRps,
    authRateLimitBurst: rateLimitBurst,
    ...same
  } = valuesOf(ownSettings, value)
  const named = { ...same, enabled, issuer, rateLimitRps, rateLimitBurst }
  return Object.freeze({ ...named, ...(licenseKey !== undefined && licenseKey !== '' && { licenseKey }) })
}

/** Reads the settings of mail; undefined if mail is off. */
export function readMail(value: ValueOf): MailConfig | undefined {
  const values = valuesOf(mailSettings, value)
  const { mailEnabled, mailSmtpUrl: smtpUrl, mailFrom: from, mailLinkBaseUrl: linkBaseUrl } = values
  if (!mailEnabled || smtpUrl === undefined || from === undefined || linkBaseUrl === undefined)
    return undefined
  return Object.freeze({ smtpUrl, from, linkBaseUrl })
}

/** The fault of a session that could not be renewed while its token is still valid. */
export function sessionFaults({ jwtExpirySecs, refreshTokenExpirySecs }: AuthConfig): SettingFault[] {
  if (refreshTokenExpirySecs >= jwtExpirySecs) return []
  const { refreshTokenExpirySecs: refresh, jwtExpirySecs: jwt } = ownSettings
  const given = `${refreshTokenExpirySecs}, with ${jwt.name} ${jwtExpirySecs}`
  return [{ name: refresh.name, given, allowed: refresh.allowed }]
}

/** Faults of mail that is enabled but not completely configured. */
export function mailFaults(env: Environment): SettingFault[] {
  const { mailEnabled, mailSmtpUrl, mailFrom, mailLinkBaseUrl } = mailSettings
  if (env[mailEnabled.name] !== 'true') return []
  return [mailSmtpUrl, mailFrom, mailLinkBaseUrl]
    .filter(({ name }) => env[name] === undefined)
    .map(({ name, allowed }) => ({ name, given: 'nothing', allowed }))
}

/** Warnings about settings that are allowed but rarely intended, as sentences without a full stop. */
export function authWarnings({
  auth,
  mail,
  environment,
}: {
  auth: AuthConfig
  mail?: MailConfig
  environment: 'development' | 'production'
}): string[] {
  if (!auth.enabled) return []
  const warnings: string[] = []
  if (auth.licenseKey === undefined) {
    warnings.push('SERVICE_LICENSE_KEY is not set: every auth route answers 402')
  }
  if (environment === 'production' && mail !== undefined && new URL(mail.linkBaseUrl).protocol !== 'https:') {
    warnings.push(
      'SERVICE_MAIL_LINK_BASE_URL is not https in production: an attacker on the network can steal the tokens of links',
    )
  }
  return warnings
}
