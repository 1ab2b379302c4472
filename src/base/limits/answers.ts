/**
 * Limits of pages, streams, the graph, large, compressed and shared answers, and the files of the console.
 */
export const answerLimits = {
  /** Bytes from which an answer is compressed. */
  compressedAnswerBytesMin: 4_096,
  /** Answers that are compressed at the same time. */
  answerCompressionsMax: 2,
  /** Bytes of a compressed answer or export that are passed to the front thread in one piece. */
  compressedPieceBytes: 262_144,
  /**
   * How long an answer that is the same for every caller (metrics, `GET /v1/server`) is cached, milliseconds.
   */
  sharedAnswerMs: 1_000,
  /** Exports that are compressed at the same time. */
  exportCompressionsMax: 8,
  /** Files of the console. A build with more is not served. */
  consoleFilesMax: 128,
  /** Bytes of one uncompressed file of the console. */
  consoleFileBytesMax: 4_194_304,
  pageRowsMax: 1_000,
  metricNamesMax: 64,
  /** Rows in a page of agents with their status. */
  agentStatusesMax: 100,
  /** Bytes of rows after which a sweep ends, or a page of rows that are parsed whole. */
  scannedRowBytesMax: 1_048_576,
  /** Rows up to which a page counts all that match a prefix. */
  countedRowsMax: 10_000,
  /** Namespaces and kinds of auth rows whose number a shard keeps. */
  countedKindsMax: 16_384,
  /** Names of agents that one call to a shard examines for a part of a name. */
  agentNamesExaminedMax: 8_192,
  /** Records that a search by the beginning of a hash finds in one shard, and in all. */
  recordsFoundMax: 100,
  pageRowsDefault: 20,
  /** Records that one page call examines before it returns a cursor. */
  pageScanRecordsMax: 4_096,
  /** Bytes of bodies in one page. A full page ends with a cursor. */
  pageBytesMax: 4_194_304,
  /**
   * Bytes that a page call reads and compares (at least 64 for each condition) before it returns a cursor.
   */
  pageWorkBytesMax: 8_388_608,
  /** Bytes of rows after which a query examines no further records. */
  pageTargetBytes: 262_144,
  /** Bytes of answers to reads after which the turn of a shard ends. */
  turnAnswerBytes: 1_048_576,
  /** Bytes from which an answer is sent in parts, as fast as its client reads. */
  largeAnswerBytes: 32_768,
  /** Unsent bytes of large answers and exports. Events of streams have the same limit. */
  unsentBytesMax: 268_435_456,
  /** Unsent bytes of large answers to one principal; beyond that, its requests are answered 503. */
  unsentBytesPerPrincipalMax: 33_554_432,
  /** Unsent bytes of events to one principal; beyond that, its other streams wait. */
  streamUnsentBytesPerPrincipalMax: 67_108_864,
  /** Bytes of events in one write to a stream, and in one page for a client that is behind. */
  streamBufferBytes: 65_536,
  /** Bytes of the latest events of one agent, buffered for clients that are slightly behind. */
  streamRecentBytes: 131_072,
  /** Streams of one agent from which its latest events are buffered. */
  streamRecentReadersMin: 16,
  /** Records in one page with which a stream catches up. */
  streamPageRows: 256,
  /** Pages for streams that one shard reads at the same time. */
  streamPagesInFlightMax: 8,
  /** How long the front works on streams, or on large answers, before it does other work, milliseconds. */
  streamSliceMs: 8,
  /** Bytes of events that wait to be written to streams; beyond that, the streams continue from the store. */
  streamBacklogBytesMax: 16_777_216,
  /** Open streams, and the largest value of SERVICE_STREAMS_PER_PRINCIPAL. */
  streamsMax: 50_000,
  /** Milliseconds between comments on an idle stream. */
  streamHeartbeatMs: 15_000,
  /**
   * Milliseconds between searches for streams of users whose token has expired, and between repetitions of what
   * a shard has refused to streams.
   */
  streamExpiryMs: 500,
  /** Agents that one global stream can name. */
  streamAgentsMax: 1_000,
  /** Lifetime of a stream ticket, seconds. */
  streamTicketSecs: 60,
  streamTicketsMax: 100_000,
  /** Bytes of the file that preserves stream tickets over a restart. */
  streamTicketsFileBytes: 33_554_432,
  /** Steps of a traversal. */
  graphDepthMax: 3,
  /** Nodes after which a traversal is truncated. */
  graphNodesMax: 1_000,
  /** Edges after which a traversal is truncated. */
  graphEdgesMax: 10_000,
  /** Characters in names of nodes and edges after which a traversal is truncated. */
  graphCharsMax: 2_097_152,
  /** Rows of the index after which a traversal is truncated. */
  graphRowsMax: 65_536,
  /** Nodes of a traversal whose edges are read at the same time. */
  graphNodesInFlightMax: 16,
  /** Edges of a node in the first call. */
  graphFirstRows: 256,
  /** Rows of the index of edges that one call to a shard examines. */
  graphCallRowsMax: 2_048,
  /** Users that the cache knows as allowed to read one record; one more replaces the first. */
  recordReadersMax: 8,
} as const
