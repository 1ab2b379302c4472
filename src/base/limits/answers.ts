/** The limits of compressed and of shared answers, and of the files of the console; a part of `limits`. */
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
} as const
