/** The limits of pages, streams and the graph, of large, compressed and shared answers, and of the files of the console; a part of `limits`. */
export const answerLimits = {
  /** Bytes of an answer that are worth compressing; fewer are sent as they are. */
  codedAnswerBytesMin: 4_096,
  /** Answers that are compressed at once. */
  codedAnswersMax: 2,
  /** Bytes of a compressed answer or export that the front thread gets in one piece. */
  codedPieceBytes: 262_144,
  /** How long an answer that is the same for every caller (metrics, `GET /v1/server`) is kept, milliseconds. */
  sharedAnswerMs: 1_000,
  /** Exports that are compressed at once. */
  codedExportsMax: 8,
  /** Files of the console; a build with more is not served. */
  consoleFilesMax: 128,
  /** Bytes of one file of the console, not compressed. */
  consoleFileBytesMax: 4_194_304,
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
  /** Users that the cache remembers as allowed to read one record; one more replaces the first. */
  recordReadersMax: 8,
} as const
