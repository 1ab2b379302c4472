/** The limits of ingest and import; a part of `limits`. */
export const ingestLimits = {
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
} as const
