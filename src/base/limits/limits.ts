import { answerLimits } from './answers.js'
import { conditionLimits } from './conditions.js'
import { frontLimits } from './front.js'
import { assertRelated } from './relations.js'
import { outboundLimits } from './outbound.js'
import { proposalLimits } from './proposals.js'

/** Every bound of the server, each with its unit (docs/GUARANTEES.md, Bounds). */
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
  /** Headers of a request; fewer than uWebSockets.js refuses by a page of its own. */
  headersMax: 90,
  /** How long a connection can be idle according to `Keep-Alive`, seconds; it is closed after 8 to 12. */
  keepAliveSecs: 5,
  /**
   * How long a connection can do nothing (no head, no body, nothing read of an answer) with node:http, milliseconds:
   * what uWebSockets.js gives it.
   */
  connectionPatienceMs: 10_000,
  /** Bytes of a body that a client must send within `connectionPatienceMs` with node:http: 16 KiB a second, too. */
  bodyBytesPerPatience: 163_840,
  /**
   * Connections that wait until node:http accepts them; the system may allow fewer. Of what arrives beyond it, a client
   * takes its connection for open, and the server has never heard of it.
   */
  listenBacklog: 4_096,
  /** How often node:http looks for heads that take too long, milliseconds. */
  connectionsCheckMs: 2_000,
  /** How long writes wait before they are tried again when there is no room on the disk, seconds. */
  storageFullRetrySecs: 30,
  /** How long a client that is still sending has to see the last answer of its connection, milliseconds. */
  lastAnswerLingerMs: 1_000,
  /** Bytes of chunks of a body that are joined before they are read. */
  chunksGatheredBytes: 16_384,
  /** Bytes of chunks that are kept until all that arrived with them was parsed: more of them are passed on before. */
  chunksHeldBytes: 65_536,
  /** Chunks of one body in one turn of the event loop; more of them, if small, close the connection. */
  smallChunksTogetherMax: 16_384,
  /** Bytes below which such chunks are small, on average. */
  smallChunkBytes: 48,
  /** Chunks of one body with node:http after which no more of it is read in this turn of the event loop. */
  chunksPerTurn: 1_024,
  /** Chunks of one body in one turn with node:http: more of them are small ones, and close the connection. */
  chunksPerTurnMax: 4_096,
  /** Rows in one page. */
  pageRowsMax: 1_000,
  /** Names of metrics that one request asks for. */
  metricNamesMax: 64,
  /** Rows in a page of agents with their status. */
  agentStatusesMax: 100,
  /** Rows in a page when the request does not say how many. */
  pageRowsDefault: 20,
  /** Records that one page call looks at before it answers with a cursor, matches or not. */
  pageScanRecordsMax: 4_096,
  /** Bytes of bodies in one page, after which it ends early with a cursor. */
  pageBytesMax: 4_194_304,
  /** Bytes that a page call reads and compares (at least 64 for each condition) before it answers with a cursor. */
  pageWorkBytesMax: 8_388_608,
  /** Bytes of rows after which a query does not look at further records. */
  pageEnoughBytes: 262_144,
  /** Bytes of answers to reads after which a shard's turn ends. */
  turnAnswerBytes: 1_048_576,
  /** Bytes from which an answer is sent at the pace of its reader. */
  largeAnswerBytes: 32_768,
  /** Bytes of such answers, and of exports, that wait for their readers; the same limit holds for events of streams. */
  unsentBytesMax: 268_435_456,
  /** Bytes of such answers that wait for the readers of one principal; beyond that it is answered 503. */
  unsentBytesPerPrincipalMax: 33_554_432,
  /** Bytes of events that wait for the readers of one principal; beyond that its other streams wait too. */
  streamUnsentBytesPerPrincipalMax: 67_108_864,
  /** Bytes of any request body except records, batches and ingest. */
  requestBytesMax: 65_536,
  /** Faults that a refusal of one body lists. */
  faultsMax: 20,
  /** Of a body that is no JSON and in which the place of the fault is looked for. */
  jsonPlaceBytesMax: 1_048_576,
  /** Bytes of an ingest stream that is one chunk: one command to a shard, one commit. */
  ingestChunkBytes: 262_144,
  /** Lines of one such chunk: the records that one command adds to a commit must fit into the hash index. */
  ingestChunkLines: 4_096,
  /** Chunks of one ingest stream in flight at once; beyond that the connection is paused. */
  ingestChunksInFlightMax: 4,
  /** Compressed bytes of an ingest stream that are read before they are decompressed. */
  ingestReadAheadBytes: 1_048_576,
  /**
   * Bytes of an ingest body that is written whole or not at all (on_error=reject_all), and of what is kept whole where it is
   * refused (on_error=keep).
   */
  ingestAtomicBytesMax: 8_388_608,
  /**
   * Bytes of a JSON array, or of an object that `split` divides, of which nothing is written before its end was read; and of
   * the lines that are made of the object.
   */
  ingestArrayBytesMax: 16_777_216,
  /** Lines of what is written whole, for the same reason as `ingestChunkLines`. */
  ingestAtomicLinesMax: 8_192,
  /** Records that one refused line is kept as, for the same reason. */
  ingestRejectedPartsMax: 8_192,
  /** Agents in such a body: new ones are made together with its lines. */
  ingestAtomicAgentsMax: 512,
  /** Lines of one commit with `dedupe=body`: each has a row of its own beside its record. */
  ingestOnceLinesMax: 1_024,
  /** Bytes outside of the array of an object that `split` divides. */
  ingestSplitRestBytesMax: 65_536,
  /** Agents that an ingest summary has a row for. */
  ingestAgentsNamedMax: 4_096,
  /** Refused lines after which an upload is ended, unless SERVICE_INGEST_BAD_LINES_MAX says otherwise. */
  ingestBadLinesDefault: 100_000,
  /** How long the front works on slices of uploads before it serves others, milliseconds. */
  frontTurnMs: 5,
  /** Line faults that an ingest summary names. */
  ingestFaultsMax: 100,
  /** Bytes of an export's lines that are checked and committed at once, unless sealed records need more. */
  importChunkBytes: 262_144,
  /** Lines of one such part. */
  importChunkLines: 1_024,
  /** Bytes of one line of an export (docs/FORMAT.md, Export). */
  importLineBytesMax: 8_388_608,
  /** Bytes of lines that wait for the record that seals them: they are committed together with it. */
  importSealedBytesMax: 33_554_432,
  /** How far the clock of imported records, which moves the shard's, may be ahead of the machine's, milliseconds. */
  importClockAheadMsMax: 1_000,
  /** Erased records of one agent whose `sys/erase` has not come yet. */
  importOwedErasuresMax: 4_096,
  /** Records of an export that are committed at once: no server seals more in one commit group. */
  importRecordsMax: 12_800,
  /** Votes that one proposal of an export may have, besides those of one part: its row contains them all. */
  importVotesMax: 64,
  /** Commands that wait for one shard; beyond that requests are answered 503. */
  shardQueueMax: 16_384,
  /** Bytes of commands that wait for one shard. */
  shardQueueBytesMax: 268_435_456,
  /** Deaths of shard threads within this time make the pause before the next start longer, milliseconds. */
  shardRestartWindowMs: 60_000,
  /** The longest pause before a shard thread is started again, milliseconds. */
  shardRestartPauseMaxMs: 10_000,
  /** Milliseconds between checks whether the shard threads make progress. */
  shardLookMs: 250,
  /** How long a shard thread may take to open its store, milliseconds. */
  shardOpenMs: 600_000,
  /** How long a shard thread may take to end when it is ended because it hung, milliseconds. */
  shardEndMs: 5_000,
  /** How long all threads may take to end when the process ends itself, milliseconds; then it is killed. */
  processEndMs: 2_500,
  /** How long the parts that a failed start had already started may take to end, milliseconds. */
  startEndMs: 5_000,
  /** If the thread of a shard hangs again within this time, another thread does not help, milliseconds. */
  shardHangWindowMs: 600_000,
  /** Milliseconds between checks whether the task of a pool's thread makes progress. */
  poolLookMs: 250,
  /** How long a thread of a pool may take to start, milliseconds. */
  poolStartMs: 60_000,
  /** How long a thread that is to be ended may take to load its module first, milliseconds. */
  poolLoadMs: 5_000,
  /** How long a task waits for a thread of its pool, milliseconds; after that it is refused. */
  poolWaitMs: 30_000,
  /** Pause after a thread of a pool did not start; each further one in a row doubles it, milliseconds. */
  poolRetryBaseMs: 100,
  /** The longest such pause, milliseconds. */
  poolRetryMaxMs: 5_000,
  /** Threads of the pool for long reads. */
  readerThreadsMax: 2,
  /** Long reads that wait for a thread. */
  readerQueueMax: 1_024,
  /** How long a long read waits for a shard that does not serve, milliseconds. */
  readerWaitMs: 10_000,
  /** How long one long read may take, milliseconds, besides the time for the records of a tree. */
  readerTaskMs: 60_000,
  /** Records of a tree that a reader goes through in a second, at least. */
  readerLeavesPerSec: 10_000,
  /** How long a reader thread waits for work before it ends, milliseconds. */
  readerIdleMs: 30_000,
  /** Tries to find all shards between two commits, a tenth of a millisecond each, before a backup is given up. */
  snapshotTries: 100_000,
  /** How often a copy begins again because a store has gone on between its flush and the snapshots; all but the first have the shards rest. */
  backupFlushTries: 20,
  /** How long a shard rests at the most, milliseconds, and how often it is looked whether it still has to. */
  storeRestMs: 1_000,
  storeRestLookMs: 2,
  /** Milliseconds between two progress messages of a server that copies for a backup. */
  backupProgressMs: 250,
  /** Free bytes that a copy leaves on its target disk: two of its transactions. With less than half, it is given up. */
  backupTargetSpareBytes: 33_554_432,
  /** Milliseconds between checks of the free space while stores are copied. */
  backupSpaceMs: 50,
  /** How long work on a whole store may make no progress, milliseconds. */
  storeSilenceMs: 600_000,
  /** Threads that check stores. */
  storeThreadsMax: 16,
  /** Faults that the check of one store names. */
  checkFaultsMax: 20,
  /** Bytes of a backup's manifest. */
  manifestBytesMax: 1_048_576,
  /** Bytes of a small file that is read at once: seeds, keys, checkpoints, format.json. */
  smallFileBytesMax: 65_536,
  /** Bytes of each file of a backup that is not a store: format.json and the secrets. */
  backupFileBytesMax: 65_536,
  /** Threads that verify an export offline: one for each core, up to this number. */
  verifyThreadsMax: 16,
  /** Bytes of an export that one of them checks at a time. */
  verifySegmentBytes: 1_048_576,
  /** Bytes of an export that one long read produces. */
  exportPageBytes: 262_144,
  /** Roots of complete 256-leaf subtrees that a reader thread caches: those of 16 million records. */
  subtreesKeptMax: 65_536,
  /** Heads in one record of the server log. */
  logRecordHeadsMax: 256,
  /** Heads after which those found so far are written to the server log, in one commit. */
  logHeadsMax: 1_024,
  /** Blocks that one search of a shard for moved heads goes through. */
  logScanBlocks: 64,
  /** Bytes of blocks after which such a search ends as well. */
  logScanBytes: 2_097_152,
  /** Agents whose heads one search returns, where it goes through the agents. */
  logScanAgents: 256,
  /** Records of the server log that one command indexes again. */
  logIndexRecords: 16,
  /** Milliseconds between checks of the free space of the data disk. */
  diskWatchMs: 1_000,
  /** Milliseconds between checks whether the last answer is sent, while stopping. */
  drainPollMs: 20,
  /** How long a shard works on short writes in one turn, then on long ones, and then on reads, milliseconds each. */
  shardTurnMs: 40,
  /** Bytes of a record's body up to which it is a short write. */
  shortWriteBytesMax: 65_536,
  /** Records decided in one commit group. */
  commitRecordsMax: 4_096,
  /** Bytes of the bodies of short writes in one commit group, after which no further one joins it. */
  commitBytesMax: 1_048_576,
  /** Rows that wait for a flush to LMDB: bytes and records at which one is due, and milliseconds after the first. */
  flushBytes: 4_194_304,
  flushRecords: 8_192,
  flushAgeMs: 250,
  /** Bytes of rows of a log that is read after which they are brought to the store. */
  replayBytes: 16_777_216,
  /** How often an idle shard looks whether a flush is due. */
  flushLookMs: 50,
  /** Agents that one shard keeps in memory with chain head and key pair, at about 900 bytes each. */
  openAgentsMax: 131_072,
  /** An agent that is not used leaves the memory of its shard after one to two times this long, milliseconds. */
  agentRestMs: 60_000,
  /** Bytes of events that are written to one stream at once; a reader that is behind gets pages of this size. */
  streamBufferBytes: 65_536,
  /** Bytes of the latest events of one agent that are kept for readers that fall behind a little. */
  streamRecentBytes: 131_072,
  /** The number of streams of one agent from which its latest events are kept. */
  streamRecentReadersMin: 16,
  /** Records of one page that a stream catches up with. */
  streamPageRows: 256,
  /** Pages of streams that one shard is asked for at once. */
  streamPagesAtOnce: 8,
  /** How long the front works on streams, or on large answers, before it does other work in between, milliseconds. */
  streamSliceMs: 8,
  /** Bytes of events that wait to be written to streams; beyond that the streams continue from the store. */
  streamBacklogBytesMax: 16_777_216,
  /** The most that SERVICE_STREAMS_PER_PRINCIPAL can be set to; as many streams can be open at once. */
  streamsMax: 50_000,
  /** Milliseconds between comments on an idle stream. */
  streamHeartbeatMs: 15_000,
  /** Milliseconds between searches for streams of users whose token has expired. */
  streamExpiryMs: 500,
  /** Agents that one global stream can name. */
  streamAgentsMax: 1_000,
  /** Seconds that a stream ticket lives. */
  streamTicketSecs: 60,
  /** Unused stream tickets at once. */
  streamTicketsMax: 100_000,
  /** Bytes of the file by which stream tickets outlive a restart. */
  streamTicketsFileBytes: 33_554_432,
  /** Hops of X-Forwarded-For that are read, from the right. */
  forwardedHopsMax: 32,
  /** Connections that are accepted however low the limit of open files is. */
  connectionsMin: 16,
  /** File descriptors that connections leave for the process itself, mails, providers, the sink, a backup's files. */
  descriptorsReserved: 80,
  /** The same for each shard: its store, its thread, and the store once more for each pool that opens it. */
  descriptorsPerShard: 12,
  /** The same for each core: the threads of pools, which come and go. */
  descriptorsPerThread: 8,
  /** Bytes of log lines of one part that wait while standard error takes none; later lines are dropped. */
  logWaitingBytesMax: 1_048_576,
  /** Milliseconds between two log lines that there are too many connections. */
  connectionsFullLogMs: 60_000,
  /** Client addresses that the rate limiter remembers. */
  rateLimitAddressesMax: 100_000,
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
  /** Hours that an idempotency key is kept. */
  idempotencyHours: 24,
  /** Characters of an Idempotency-Key. */
  idempotencyKeyCharsMax: 255,
  /** Steps of a traversal. */
  graphDepthMax: 3,
  /** Nodes of one traversal, after which it is truncated. */
  graphNodesMax: 1_000,
  /** Edges of one traversal, after which it is truncated. */
  graphEdgesMax: 10_000,
  /** Characters of the names of these nodes and edges, after which it is truncated. */
  graphCharsMax: 2_097_152,
  /** Rows of the index that one traversal looks at, after which it is truncated. */
  graphRowsMax: 65_536,
  /** Nodes of a traversal whose edges are asked for at once. */
  graphNodesAtOnce: 16,
  /** Edges of each such node that are asked for at once. */
  graphFirstRows: 256,
  /** Rows of the index of edges that one call to a shard looks at. */
  graphCallRowsMax: 2_048,
  /** How far a strand's clock may run ahead of the machine's, milliseconds (docs/adr/0006-clocks.md). */
  clockAheadMsMax: 60_000,
  /** Rotations of one agent's key: a stored record names its key by one byte. */
  keyRotationsMax: 255,
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
  /** Agents that one request makes together with their organism. */
  organismAgentsMax: 1_000,
  /** Organisms whose auth namespace is known to exist without asking their shard. */
  namespacesKnownMax: 65_536,
  /** Users that the cache remembers as allowed to read one record; one more replaces the first. */
  recordReadersMax: 8,
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
  /** Bytes that a copy of the shards may take for each byte of the shards. */
  reshardSpaceFactor: 1.5,
  /** Rows that one transaction of a copy, or of a move to another shard, writes. */
  movedRowsMax: 16_384,
  /** Bytes of them, after which the transaction ends: this much is in memory for each new store. */
  movedBytesMax: 8_388_608,
  ...answerLimits,
  ...conditionLimits,
  ...frontLimits,
  ...outboundLimits,
  ...proposalLimits,
} as const
assertRelated(limits)
