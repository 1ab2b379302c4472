/** Limits of connections, requests, bodies and front threads (docs/adr/0045-fronts.md). */
export const requestLimits = {
  /** Bytes of the canonical body of one record; the default of SERVICE_RECORD_MAX_BYTES. */
  recordBytesDefault: 262_144,
  /** The largest value of SERVICE_RECORD_MAX_BYTES, bytes. */
  recordBytesMax: 1_048_576,
  /** Levels of arrays and objects within the body of a record. */
  nestingDepthMax: 64,
  batchRecordsMax: 1_000,
  /** Bytes of one batch request. */
  batchBytesMax: 8_388_608,
  /** Bytes of a header block, set before the HTTP library loads. */
  headerBlockBytesMax: 16_384,
  /** Headers of a request; fewer than uWebSockets.js refuses with a built-in page. */
  headersMax: 90,
  /** Idle time that `Keep-Alive` announces, seconds; the server closes a connection after 8 to 12. */
  keepAliveSecs: 5,
  /**
   * How long a node:http connection may make no progress in either direction, milliseconds; as with
   * uWebSockets.js.
   */
  connectionIdleMs: 10_000,
  /** Bytes of a body that a client must send within `connectionIdleMs` with node:http: 16 KiB a second. */
  bodyBytesPerIdleTime: 163_840,
  /**
   * Connections that wait for node:http to accept them; the system may allow fewer. Beyond it, a client sees
   * an open connection that the server never receives.
   */
  listenBacklog: 4_096,
  /** Milliseconds between checks of node:http for slow request heads. */
  connectionsCheckMs: 2_000,
  /** `Retry-After` of writes while the disk is full, seconds. */
  storageFullRetrySecs: 30,
  /** `Retry-After` of a 503 that does not say more, seconds. */
  unavailableRetrySecs: 1,
  /** How long the last answer of a connection waits for a client that is still sending, milliseconds. */
  lastAnswerLingerMs: 1_000,
  /** Bytes of chunks of a body that are joined before they are read. */
  chunksGatheredBytes: 16_384,
  /**
   * Bytes of chunks that are held until everything that arrived with them is parsed; beyond that, they are
   * passed on.
   */
  chunksHeldBytes: 65_536,
  /** Chunks of one body in one turn of the event loop; more, if they are small, close the connection. */
  smallChunksPerTurnMax: 16_384,
  /** Average bytes below which such chunks are small. */
  smallChunkBytes: 48,
  /** Chunks of one body with node:http after which reading pauses until the next turn of the event loop. */
  chunksPerTurn: 1_024,
  /** Chunks of one body in one turn with node:http; more close the connection. */
  chunksPerTurnMax: 12_288,
  /** Bytes of any request body except records, batches and ingest. */
  requestBytesMax: 65_536,
  /** Faults in the refusal of one body. */
  faultsMax: 20,
  /** Bytes of a malformed JSON body that are searched for the position of the fault. */
  jsonFaultBytesMax: 1_048_576,
  /** How long the front works on slices of uploads before it does other work, milliseconds. */
  frontTurnMs: 5,
  /** Hops of X-Forwarded-For that are read, from the right. */
  forwardedHopsMax: 32,
  /** Connections that are accepted even if the limit of open files is lower. */
  connectionsMin: 16,
  /** File descriptors reserved for the process, mails, providers, the sink and the files of a backup. */
  descriptorsReserved: 80,
  /**
   * File descriptors reserved for each shard: its store, its thread, and the store again for each pool that
   * opens it.
   */
  descriptorsPerShard: 12,
  /** File descriptors reserved for each core, for the threads of pools. */
  descriptorsPerThread: 8,
  /**
   * Bytes of log lines of one part that wait while standard error accepts none; further lines are dropped.
   */
  logWaitingBytesMax: 1_048_576,
  /** Milliseconds between two log lines about too many connections. */
  connectionsFullLogMs: 60_000,
  /** Client addresses that the rate limiter remembers. */
  rateLimitAddressesMax: 100_000,
  /** Lifetime of an idempotency key, hours. */
  idempotencyHours: 24,
  idempotencyKeyCharsMax: 255,
  /** Agents that one request creates together with their organism. */
  organismAgentsMax: 1_000,
  /** The largest value of SERVICE_FRONTS. */
  frontsMax: 16,
  /** Fronts of one shard: those of its process and those of other nodes of the cluster. */
  frontNumbers: 128,
  /**
   * Bytes of decompressed request bodies in memory, if they arrive in several parts; beyond that, a body is
   * answered 503.
   */
  bodyBytesInMemoryMax: 268_435_456,
  /** Bytes of such bodies of one principal, or of one address without a credential. */
  bodyBytesPerPrincipalMax: 67_108_864,
  /** Bytes of a body that is read as a whole before it waits for its turn to use memory. */
  smallBodyBytesMax: 131_072,
  /** Such bodies of one principal that wait. */
  bodyMemoryQueueMax: 64,
  /** Bytes that no such body takes, so that those that wait can be received as far as they must. */
  bodyMemorySpareBytes: 16_777_216,
  /** How long they wait while no body of their principal gets memory, milliseconds. */
  bodyMemoryWaitMs: 30_000,
  /** How often they look whether memory that another front counts is free, milliseconds. */
  bodyMemoryPollMs: 50,
  /** Bytes of a part of a body that its reader receives in one call. */
  bodyPartBytes: 65_536,
  /** Bytes that paused bodies of one front buffer; more are answered 503. */
  bufferedBytesMax: 268_435_456,
  /** Buffered bytes of one principal after which its connections stay paused until it has fewer. */
  bufferedHolderBytes: 50_331_648,
  /** Bytes that uWebSockets.js reads in one call, and may deliver of a connection that is paused. */
  readBytes: 524_288,
  /** Bytes in one step of decompression. */
  gunzipPieceBytes: 65_536,
  /** Memory to decompress one body, bytes: a piece, and the window and the tables of zlib. */
  gunzipBytes: 131_072,
  /** How long the front works on requests in one turn of the event loop, milliseconds. */
  requestTurnMs: 20,
  /** Pipelined requests that wait on a node:http connection; one more closes it. */
  requestsAheadMax: 32,
  /** How long a command waits for a shard that moves to another node, milliseconds. */
  shardMoveMs: 2_000,
  /** Milliseconds between checks for commands that have waited for `shardMoveMs`. */
  shardMoveCheckMs: 50,
  /** Milliseconds between two heartbeats of a front thread. */
  frontHeartbeatMs: 200,
} as const
