/** Every bound of the server, each with its unit (contract.md 2.4; style.md, Bound everything). */
export const limits = {
  /** Bytes of one record's body in canonical form, unless SERVICE_RECORD_MAX_BYTES says otherwise. */
  recordBytesDefault: 262_144,
  /** The most that SERVICE_RECORD_MAX_BYTES can be set to, bytes. */
  recordBytesMax: 1_048_576,
  /** Levels of arrays and objects within a record's body. */
  nestingDepthMax: 64,
  /** Records in one batch. */
  batchRecordsMax: 1_000,
  /** Bytes of one batch request. */
  batchBytesMax: 8_388_608,
  /** Bytes of a header block, set before the HTTP library loads. */
  headerBlockBytesMax: 16_384,
  /** Rows in one page. */
  pageRowsMax: 1_000,
  /** Rows in a page when the request names none (spec.md, Limits). */
  pageRowsDefault: 20,
  /** Records that one page call looks at before it answers with a cursor, matches or not. */
  pageScanRecordsMax: 4_096,
  /** Bytes of bodies in one page, after which it ends early with a cursor. */
  pageBytesMax: 4_194_304,
  /** Bytes of any request body but records, batches and ingest. */
  requestBytesMax: 65_536,
  /** Bytes of an ingest stream that is one chunk: one command to a shard, one commit. */
  ingestChunkBytes: 262_144,
  /** Lines of one such chunk: what one command adds to a commit must leave room in the hash index. */
  ingestChunkLines: 4_096,
  /** Chunks of one ingest stream under way at once; past that the connection is paused. */
  ingestChunksInFlightMax: 4,
  /** Compressed bytes of an ingest stream that are read before they are unfolded. */
  ingestReadAheadBytes: 1_048_576,
  /** Bytes of an ingest body that is written whole or not at all (on_error=reject_all). */
  ingestAtomicBytesMax: 8_388_608,
  /** Lines of such a body, for the same reason as `ingestChunkLines`. */
  ingestAtomicLinesMax: 8_192,
  /** Line faults that an ingest summary names. */
  ingestFaultsMax: 100,
  /** Commands that wait for one shard, past which requests are answered 503. */
  shardQueueMax: 16_384,
  /** Bytes of commands that wait for one shard. */
  shardQueueBytesMax: 268_435_456,
  /** Deaths of shard threads within this time make the pause before the next start longer, milliseconds. */
  shardRestartWindowMs: 60_000,
  /** The longest pause before a shard thread is started again, milliseconds. */
  shardRestartPauseMaxMs: 10_000,
  /** Threads of the pool for long reads. */
  readerThreadsMax: 2,
  /** Long reads that wait for a thread. */
  readerQueueMax: 1_024,
  /** How long a reader thread waits for work before it ends, milliseconds. */
  readerIdleMs: 30_000,
  /** Bytes of an export that one read of the pool makes. */
  exportPageBytes: 262_144,
  /** Roots of complete 256-leaf subtrees that a reader thread keeps: those of 16 million records. */
  subtreesKeptMax: 65_536,
  /** Milliseconds between looks at the free space of the data disk. */
  diskWatchMs: 1_000,
  /** Milliseconds between looks at whether the last answer is out, while stopping. */
  drainPollMs: 20,
  /** Records decided in one commit group. */
  commitRecordsMax: 4_096,
  /** Agents whose chain head one shard keeps in memory. */
  openAgentsMax: 8_192,
  /** Bytes of events that are written to one stream at once; a reader that is behind gets them in such pages. */
  streamBufferBytes: 65_536,
  /** Bytes of the latest events of one agent that are kept for readers which fall behind a little. */
  streamRecentBytes: 131_072,
  /** Streams of one agent from which on its latest events are kept. */
  streamRecentReadersMin: 16,
  /** Records of one page that a stream catches up by. */
  streamPageRows: 256,
  /** Streams open at once. */
  streamsMax: 50_000,
  /** Milliseconds between comments on an idle stream. */
  streamHeartbeatMs: 15_000,
  /** Milliseconds between looks for streams of users whose token has expired. */
  streamExpiryMs: 500,
  /** Agents that one global stream can name. */
  streamAgentsMax: 1_000,
  /** Seconds that a stream ticket lives. */
  streamTicketSecs: 60,
  /** Unused stream tickets at once. */
  streamTicketsMax: 100_000,
  /** Client addresses that the rate limiter remembers. */
  rateLimitAddressesMax: 100_000,
  /** Credentials that were found good and are known again without hashing them. */
  credentialsKeptMax: 1_000,
  /** API keys. */
  apiKeysMax: 10_000,
  /** Hours that an idempotency key is kept. */
  idempotencyHours: 24,
  /** Characters of an Idempotency-Key. */
  idempotencyKeyCharsMax: 255,
  /** How far a strand's clock may run ahead of the machine's, milliseconds (contract.md 4). */
  clockAheadMsMax: 60_000,
  /** Conditions in the `where` of one query, and in one row policy. */
  whereConditionsMax: 32,
  /** Row policies of one agent. */
  policiesMax: 64,
  /** Threads that hash passwords; fewer where there are fewer cores. */
  passwordThreadsMax: 16,
  /** Passwords that wait for a thread: a few seconds of work for two cores. */
  passwordQueueMax: 256,
  /** How long a password thread waits for work before it ends, milliseconds. */
  passwordIdleMs: 30_000,
  /** Logins by password that wait for others of the same e-mail. */
  loginWaitingPerEmailMax: 32,
  /** Logins by password that wait for others of their e-mail, of all e-mails together. */
  loginWaitingMax: 1_024,
  /** Namespaces whose signing keys are kept in memory. */
  namespaceKeysMax: 4_096,
  /** Bytes of tokens that were found good and are known again. */
  verifiedTokenBytesMax: 33_554_432,
  /** Milliseconds between looks for ended sessions that no token can name any more. */
  endedSweepMs: 60_000,
  /** Sessions of one user; another login ends the one that was unused for longest. */
  sessionsPerUserMax: 100,
  /** Seconds that a link for verifying an e-mail works. */
  verifyLinkSecs: 86_400,
  /** Seconds that a link for resetting a password works. */
  resetLinkSecs: 3_600,
  /** Links of one e-mail that can be used at once. */
  linksPerEmailMax: 16,
  /** Mails that are taken out of the outbox at once. */
  mailBatchMax: 32,
  /** Tries of one mail, after which it is given up. */
  mailAttemptsMax: 20,
  /** Pause after the first failed try of a mail; each further one doubles it, milliseconds. */
  mailRetryBaseMs: 5_000,
  /** The longest pause between two tries of a mail, milliseconds. */
  mailRetryMaxMs: 900_000,
  /** How long the mail server may take to accept a connection, to greet, or to answer one command, milliseconds. */
  mailSilenceMs: 15_000,
  /** How long sending one mail may take in all, milliseconds. */
  mailSendMs: 60_000,
  /** How long the mail that is being sent may still take when the server stops, milliseconds. */
  mailStopMs: 3_000,
  /** Milliseconds between looks into the outbox for mails whose next try is due. */
  mailPollMs: 5_000,
} as const
