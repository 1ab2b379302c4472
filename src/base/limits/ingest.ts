export const ingestLimits = {
  /** Bytes of one chunk of an ingest stream, which is one command to a shard and one commit. */
  ingestChunkBytes: 262_144,
  /** Lines of one chunk: the records of one command must fit into the hash index of a commit. */
  ingestChunkLines: 4_096,
  /** Chunks of one ingest stream in flight; beyond that, the connection is paused. */
  ingestChunksInFlightMax: 4,
  /**
   * Bytes of an atomic ingest body (on_error=reject_all), and of a refused body that is stored
   * (on_error=keep).
   */
  ingestAtomicBytesMax: 8_388_608,
  /**
   * Bytes of a JSON array, or of an object for `split`, which are read completely before a write; also of the
   * lines from `split`.
   */
  ingestArrayBytesMax: 16_777_216,
  /** Lines of an atomic ingest, for the same reason as `ingestChunkLines`. */
  ingestAtomicLinesMax: 8_192,
  /** Records in which one refused line is stored, for the same reason. */
  ingestRejectedPartsMax: 8_192,
  /** Agents in an atomic ingest: new ones are created in the same commit. */
  ingestAtomicAgentsMax: 512,
  /** Lines of one commit with `dedupe=body`: each adds a row. */
  ingestDedupeLinesMax: 1_024,
  /** Bytes outside of the array of an object that `split` divides. */
  ingestSplitRestBytesMax: 65_536,
  /** Agents that have a row in an ingest summary. */
  ingestAgentsNamedMax: 4_096,
  /** Refused lines after which an upload is aborted; the default of SERVICE_INGEST_BAD_LINES_MAX. */
  ingestBadLinesDefault: 100_000,
  /** Line faults in an ingest summary. */
  ingestFaultsMax: 100,
  /** Levels of messages, arrays and objects of a record in an OTLP request, which is still checked. */
  otlpDepthMax: 128,
  /** Levels of an OTLP request in JSON: a record that exceeds its own is refused by itself. */
  otlpJsonDepthMax: 10_000,
  /** Resources and scopes of an OTLP request. */
  otlpGroupsMax: 65_536,
  /** Log records or spans of an OTLP request. */
  otlpRecordsMax: 262_144,
  /** Fields of one of them, with those of the messages in it, or of its resource or scope. */
  otlpFieldsMax: 20_000,
  /** Bytes of the resources and scopes of an OTLP request, counted with each record that repeats them. */
  otlpRepeatedBytesMax: 268_435_456,
  /**
   * Bytes of the lines into which an OTLP request is converted in one task of a thread, before they are
   * written. Each contains the resource and the scope of its record.
   */
  otlpPartBytesMax: 4_194_304,
  /** Bytes of the records that are decoded in one such task, so that requests take turns. */
  otlpPartReadBytesMax: 1_048_576,
  /** Invalid records in one such task. */
  otlpPartRefusedMax: 1_000,
  /** Threads that decode OTLP requests. */
  otlpThreadsMax: 2,
  /** OTLP requests that wait for such a thread. */
  otlpQueueMax: 256,
  /** How long the decoding of one may take, milliseconds. */
  otlpTaskMs: 30_000,
  /** How long such a thread waits for work before it ends, milliseconds. */
  otlpIdleMs: 30_000,
  /** Bytes of lines of an export that are checked and committed together, unless sealed records need more. */
  importChunkBytes: 262_144,
  /** Lines of one such part. */
  importChunkLines: 1_024,
  /** Bytes of one line of an export (docs/FORMAT.md, Export). */
  importLineBytesMax: 8_388_608,
  /** Bytes of lines that wait for the record that seals them; both are committed together. */
  importSealedBytesMax: 33_554_432,
  /**
   * How far the clock of imported records may be ahead of the machine, milliseconds. It moves the clock of
   * the shard.
   */
  importClockAheadMsMax: 1_000,
  /** Records of an export in one commit: no server seals more in one commit group. */
  importRecordsMax: 12_800,
  /** Bytes of the bodies of these records, if there is more than one. */
  importBodyBytesMax: 12_582_912,
  /** Erasures of an export in one commit: each may rewrite a block with a body of any size. */
  importErasuresMax: 8,
  /** How long after its record an imported proposal may say that it ends, milliseconds. */
  importProposalMsMax: 366 * 86_400_000,
} as const
