/** The limits of shards, their threads and stores, and of the pools that read them; a part of `limits`. */
export const shardLimits = {
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
  /** How far a strand's clock may run ahead of the machine's, milliseconds (docs/adr/0006-clocks.md). */
  clockAheadMsMax: 60_000,
  /** Rotations of one agent's key: a stored record names its key by one byte. */
  keyRotationsMax: 255,
  /** Bytes that a copy of the shards may take for each byte of the shards. */
  reshardSpaceFactor: 1.5,
  /** Rows that one transaction of a copy, or of a move to another shard, writes. */
  movedRowsMax: 16_384,
  /** Bytes of them, after which the transaction ends: this much is in memory for each new store. */
  movedBytesMax: 8_388_608,
} as const
