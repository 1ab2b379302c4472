/** The limits of connections, requests and their bodies, and of the threads that take them (docs/adr/0045-fronts.md); a part of `limits`. */
export const requestLimits = {
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
  /** Bytes of any request body except records, batches and ingest. */
  requestBytesMax: 65_536,
  /** Faults that a refusal of one body lists. */
  faultsMax: 20,
  /** Of a body that is no JSON and in which the place of the fault is looked for. */
  jsonPlaceBytesMax: 1_048_576,
  /** How long the front works on slices of uploads before it serves others, milliseconds. */
  frontTurnMs: 5,
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
  /** Hours that an idempotency key is kept. */
  idempotencyHours: 24,
  /** Characters of an Idempotency-Key. */
  idempotencyKeyCharsMax: 255,
  /** Agents that one request makes together with their organism. */
  organismAgentsMax: 1_000,
  /** The most that SERVICE_FRONTS can be set to. */
  frontsMax: 16,
  /** The most fronts that a shard talks to: those of its process, and those of other nodes of the cluster. */
  frontNumbers: 128,
  /**
   * Bytes of request bodies that are in memory: those that arrive in several parts, after decompression, until they are
   * carried out. Beyond that a body is answered 503.
   */
  bodyBytesInMemoryMax: 268_435_456,
  /** Bytes of such bodies of one principal, or of one address without a credential. */
  bodyBytesPerPrincipalMax: 67_108_864,
  /** Bytes that are decompressed at once. */
  gunzipPieceBytes: 65_536,
  /** Bytes that decompressing one body takes: a piece, and the window and the tables of zlib. */
  gunzipBytes: 131_072,
  /** How long the front works on requests in one turn of the event loop before the others wait, milliseconds. */
  requestTurnMs: 20,
  /** Requests that wait for those before them on their connection, with node:http; one more closes it. */
  requestsAheadMax: 32,
  /** How long a command waits for a shard that moves to another node, milliseconds. */
  shardMoveMs: 2_000,
  /** Pause between two looks at what has waited for so long, milliseconds. */
  shardMoveLookMs: 50,
  /** Milliseconds between two signs of life of a front thread. */
  frontBeatMs: 200,
} as const
