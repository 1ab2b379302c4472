/** Bounds of the threads that take requests (docs/adr/0045-fronts.md). */
export const frontLimits = {
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
