/** The limits of sign-in and API keys; a part of `limits`. */
export const authLimits = {
  /** Valid credentials that are cached, so that they are not hashed again. */
  credentialsKeptMax: 1_000,
  /** API keys. */
  apiKeysMax: 10_000,
  /** API keys that are read at once at the start. */
  apiKeyLoadRows: 1_000,
  /** Milliseconds between searches for API keys that have expired. */
  apiKeyExpiryMs: 500,
  /** Milliseconds between writes of when API keys were last used. */
  apiKeyUsesMs: 60_000,
  /** The longest lifetime of an API key, seconds: ten years. */
  apiKeyExpirySecsMax: 315_360_000,
  /** Threads that hash passwords; fewer where there are fewer cores. */
  passwordThreadsMax: 16,
  /** Passwords that wait for a thread: a few seconds of work for two cores. */
  passwordQueueMax: 256,
  /** How long hashing or comparing one password may take, milliseconds. */
  passwordTaskMs: 30_000,
  /** How long a password thread waits for work before it ends, milliseconds. */
  passwordIdleMs: 30_000,
  /** Logins by password that wait for others of the same e-mail. */
  loginWaitingPerEmailMax: 128,
  /** Logins by password that wait for others of their e-mail, of all e-mails together. */
  loginWaitingMax: 1_024,
  /** Organisms whose auth namespace is known to exist without asking their shard. */
  namespacesKnownMax: 65_536,
  /** Namespaces whose signing keys are kept in memory. */
  namespaceKeysMax: 4_096,
  /** Bytes of verified tokens that are cached. */
  verifiedTokenBytesMax: 33_554_432,
  /** Milliseconds between searches for revocations that no valid token can name any more. */
  endedSweepMs: 60_000,
  /** How long the shards keep revocations beyond that, milliseconds: a clock may be ahead for a while. */
  endedKeptMs: 86_400_000,
  /** Sessions of one user; another login ends the one that was unused for longest. */
  sessionsPerUserMax: 100,
  /** How long after its exchange a refresh token is answered with the same successor again, milliseconds. */
  refreshRepeatMs: 10_000,
  /** Seconds that a link for verifying an e-mail works. */
  verifyLinkSecs: 86_400,
  /** Seconds that a link for resetting a password works. */
  resetLinkSecs: 3_600,
  /** Seconds that a device token is valid: 400 days. */
  deviceTokenSecs: 34_560_000,
  /** Links of one e-mail and purpose that can be used at once; another one ends the oldest of them. */
  linksPerPurposeMax: 16,
  /** Mails of one kind to one mailbox that are sent at once; further ones are dropped without notice. */
  mailsPerKindMax: 4,
  /** Time after which one more of them is sent, milliseconds: with the first ones, ten in an hour. */
  mailsPerKindEveryMs: 600_000,
  /** Passkeys of one user; every list of an e-mail's passkeys is filled up to this number. */
  passkeysPerUserMax: 10,
  /** Seconds after a sign-in in which its session can register a passkey; later the user has to sign in again. */
  reauthenticationSecs: 600,
  /** Seconds between asking for a passkey and the authenticator's answer. */
  passkeySessionSecs: 300,
  /** Bytes of a passkey's public key: RSA of 4,096 bits fits, and no key that is slow to compute with. */
  passkeyKeyBytesMax: 1_024,
  /** Seconds that a sign-in by a provider may take until the browser is back. */
  oauthStateSecs: 600,
} as const
