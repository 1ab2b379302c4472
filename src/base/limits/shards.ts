/** Limits of shards, their threads and stores, and of the pools that read them. */
export const shardLimits = {
  /** Commands that wait for one shard; beyond that, requests are answered 503. */
  shardQueueMax: 16_384,
  /** Bytes of commands that wait for one shard. */
  shardQueueBytesMax: 268_435_456,
  /** Crashes of shard threads within this time make the pause before the next start longer, milliseconds. */
  shardRestartWindowMs: 60_000,
  /** The longest pause before a shard thread is started again, milliseconds. */
  shardRestartPauseMaxMs: 10_000,
  /** Milliseconds between checks whether the shard threads make progress. */
  shardCheckMs: 250,
  /** How long a shard thread may take to open its store, milliseconds. */
  shardOpenMs: 600_000,
  /** How long a hung shard thread may take to end, milliseconds. */
  shardEndMs: 5_000,
  /**
   * How long all threads may take to end when the process exits, milliseconds; then the process is killed.
   */
  processEndMs: 2_500,
  /** How long the cleanup after a failed start may take, milliseconds. */
  startCleanupMs: 5_000,
  /** If the thread of a shard hangs again within this time, it is not replaced, milliseconds. */
  shardHangWindowMs: 600_000,
  /** Milliseconds between checks whether the tasks of pools make progress. */
  poolCheckMs: 250,
  /** How long a thread of a pool may take to start, milliseconds. */
  poolStartMs: 60_000,
  /** How long a thread that is to end may take to load its module first, milliseconds. */
  poolLoadMs: 5_000,
  /** How long a task waits for a thread of its pool before it is refused, milliseconds. */
  poolWaitMs: 30_000,
  /**
   * Pause after a thread of a pool failed to start, milliseconds; each further failure in a row doubles it.
   */
  poolRetryBaseMs: 100,
  /** The longest such pause, milliseconds. */
  poolRetryMaxMs: 5_000,
  /** Threads of the pool for long reads. */
  readerThreadsMax: 2,
  /** How long a long read waits for a shard that does not serve, milliseconds. */
  readerWaitMs: 10_000,
  /** How long one long read may take, milliseconds, in addition to the time for the records of a tree. */
  readerTaskMs: 60_000,
  /** Records of a tree that a reader processes in a second, at least. */
  readerLeavesPerSec: 10_000,
  /** How long a reader thread waits for work before it ends, milliseconds. */
  readerIdleMs: 30_000,
  /**
   * Attempts to find all shards between two commits, a tenth of a millisecond each, before a backup fails.
   */
  snapshotTries: 100_000,
  /**
   * Restarts of a copy because a store changed between its flush and the snapshots; the shards pause for all
   * but the first.
   */
  backupFlushTries: 20,
  /**
   * The longest pause of a shard for a backup, and the interval of the checks whether it may end,
   * milliseconds.
   */
  storePauseMs: 1_000,
  storePauseCheckMs: 2,
  /** Milliseconds between two progress messages of a server during a backup. */
  backupProgressMs: 250,
  /**
   * Free bytes that a copy leaves on its target disk: two of its transactions. With less than half, the copy
   * fails.
   */
  backupTargetSpareBytes: 33_554_432,
  /** Milliseconds between checks of the free space while stores are copied. */
  backupSpaceMs: 50,
  /** How long work on a whole store may make no progress, milliseconds. */
  storeStallMs: 600_000,
  /** Threads that check stores. */
  storeThreadsMax: 16,
  /** Faults in the report of the check of one store. */
  checkFaultsMax: 20,
  /** Bytes of the manifest of a backup. */
  manifestBytesMax: 1_048_576,
  /** Bytes of a small file that is read whole: seeds, keys, checkpoints, format.json. */
  smallFileBytesMax: 65_536,
  /** Bytes of a PEM file: a bundle of authorities has some hundred certificates. */
  pemFileBytesMax: 4_194_304,
  /** Bytes of each file of a backup that is not a store: format.json and the secrets. */
  backupFileBytesMax: 65_536,
  /** Threads that verify an export offline: one for each core, up to this number. */
  verifyThreadsMax: 16,
  /** Bytes of an export that one of these threads verifies at a time. */
  verifySegmentBytes: 1_048_576,
  /** Bytes of an export that one long read produces. */
  exportPageBytes: 262_144,
  logRecordHeadsMax: 256,
  /** Heads after which a commit writes them to the server log. */
  logHeadsMax: 1_024,
  /** Blocks that one search of a shard for moved heads reads. */
  logScanBlocks: 64,
  /** Bytes of blocks after which such a search ends. */
  logScanBytes: 2_097_152,
  /** Agents whose heads one search through the agents returns. */
  logScanAgents: 256,
  /** Records of the server log that one command indexes again. */
  logIndexRecords: 16,
  /** Milliseconds between checks of the free space of the data disk. */
  diskWatchMs: 1_000,
  /** Milliseconds between checks of a stopping server whether the last answer is sent. */
  drainPollMs: 20,
  /**
   * How long a shard works on short writes in one turn, then on long ones, and then on reads, milliseconds
   * each.
   */
  shardTurnMs: 40,
  /** Bytes of a body up to which its record is a short write. */
  shortWriteBytesMax: 65_536,
  commitRecordsMax: 4_096,
  /** Bytes of bodies in one commit group, after which no further short write joins it. */
  commitBytesMax: 1_048_576,
  /**
   * A flush of waiting rows to LMDB is due at so many bytes or records, or so many milliseconds after the
   * first row: more if the flush would wait for the log, whose disk is slow or at another machine.
   */
  flushBytes: 4_194_304,
  flushRecords: 8_192,
  flushAgeMs: 50,
  flushAgeUnsyncedMs: 250,
  /** Milliseconds without a write after which a shard merges its indexes without pause. */
  shardIdleMs: 1_000,
  /** Bytes of rows from a log after which they are written to the store. */
  replayBytes: 16_777_216,
  /** Milliseconds between checks whether a flush is due, while anything is not flushed. */
  flushCheckMs: 50,
  /** Agents that one shard caches with chain head and key pair, at about 900 bytes each. */
  openAgentsMax: 131_072,
  /** An unused agent leaves this cache after one to two times this long, milliseconds. */
  agentIdleMs: 60_000,
  /** How far the clock of a strand may run ahead of the machine, milliseconds (docs/adr/0006-clocks.md). */
  clockAheadMsMax: 60_000,
  /** Key rotations of one agent: a stored record identifies its key by one byte. */
  keyRotationsMax: 255,
  /** Bytes that a copy of the shards may take for each byte of the shards. */
  reshardSpaceFactor: 1.5,
  /** Rows in one transaction of a copy, or of a move to another shard. */
  movedRowsMax: 16_384,
  /** Bytes of rows after which such a transaction ends: this much is in memory for each new store. */
  movedBytesMax: 8_388_608,
} as const
