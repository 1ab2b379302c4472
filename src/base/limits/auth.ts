export const authLimits = {
  /** Cached valid credentials, which are not hashed again. */
  cachedCredentialsMax: 1_000,
  apiKeysMax: 10_000,
  /** API keys in one read at the start. */
  apiKeyLoadRows: 1_000,
  /** Milliseconds between searches for expired API keys. */
  apiKeyExpiryMs: 500,
  /** Milliseconds between writes of the last uses of API keys. */
  apiKeyUsesMs: 60_000,
  /** The longest lifetime of an API key, seconds: ten years. */
  apiKeyExpirySecsMax: 315_360_000,
  /** Threads that hash passwords; fewer on a machine with fewer cores. */
  passwordThreadsMax: 16,
  /** Passwords that wait for a thread: a few seconds of work for two cores. */
  passwordQueueMax: 256,
  /** How long hashing or comparing one password may take, milliseconds. */
  passwordTaskMs: 30_000,
  /** How long a password thread waits for work before it ends, milliseconds. */
  passwordIdleMs: 30_000,
  /** Logins by password that wait for earlier ones of the same e-mail. */
  loginWaitingPerEmailMax: 128,
  /** The same for all e-mails together. */
  loginWaitingMax: 1_024,
  /** Organisms whose auth namespace is known to exist, so that their shard is not queried. */
  namespacesKnownMax: 65_536,
  /** Namespaces whose signing keys are cached. */
  namespaceKeysMax: 4_096,
  /** Bytes of cached verified tokens. */
  verifiedTokenBytesMax: 33_554_432,
  /** Milliseconds between searches for revocations of tokens that have all expired. */
  revocationSweepMs: 60_000,
  /** How long the shards store such revocations longer, milliseconds, because a clock may run ahead. */
  revocationRetentionMs: 86_400_000,
  /** Sessions of one user; another login ends the least recently used one. */
  sessionsPerUserMax: 100,
  /** How long after its exchange a refresh token returns the same successor again, milliseconds. */
  refreshRepeatMs: 10_000,
  /** Earlier refresh tokens of a session that are answered again. */
  refreshRepeatsMax: 32,
  /** Lifetime of a link that verifies an e-mail, seconds. */
  verifyLinkSecs: 86_400,
  /** Lifetime of a link that resets a password, seconds. */
  resetLinkSecs: 3_600,
  /** Lifetime of a device token, seconds: 400 days. */
  deviceTokenSecs: 34_560_000,
  /** Usable links of one e-mail and purpose; another one revokes the oldest. */
  linksPerPurposeMax: 16,
  /** Mails of one kind to one mailbox in a burst; further ones are silently dropped. */
  mailsPerKindMax: 4,
  /** Milliseconds after which one more such mail is allowed: with the burst, ten in an hour. */
  mailsPerKindEveryMs: 600_000,
  /** Passkeys of one user; every list of the passkeys of an e-mail is filled up to this number. */
  passkeysPerUserMax: 10,
  /** Seconds after a sign-in in which the session can register a passkey. */
  reauthenticationSecs: 600,
  /** Seconds from the start of a passkey ceremony to the answer of the authenticator. */
  passkeySessionSecs: 300,
  /** Bytes of the public key of a passkey: RSA of 4,096 bits fits, keys that are slow to verify do not. */
  passkeyKeyBytesMax: 1_024,
  /** Seconds from the start of a sign-in with a provider until the browser returns. */
  oauthStateSecs: 600,
} as const
