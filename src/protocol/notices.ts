import type { ApiKeyChanges } from './api-key-messages.js'

/**
 * What a shard tells the front thread besides outcomes and events. The notices of a commit come before its outcomes and
 * its events, so that no answer uses state that the commit has changed.
 */
export type Notice =
  /** The row policies of agents have changed: streams and cached answers under the old ones must end. */
  | { kind: 'policiesChanged'; agents: string[] }
  /** Records of agents were erased: their bodies must be dropped from memory. */
  | { kind: 'erased'; agents: string[] }
  /** Records, by their hashes, were deleted, restored or erased: answers that show them must be dropped from memory. */
  | { kind: 'recordsChanged'; hashes: string[] }
  /** API keys were made or removed. */
  | { kind: 'apiKeysChanged'; changes: ApiKeyChanges }
  /** The strands of agents grew by imported records, for which there are no events. */
  | { kind: 'imported'; agents: string[] }
  /** The store of a node was made anew from the log of its cluster; `place` is where one of another history was moved. */
  | { kind: 'storeBuilt'; place?: string }
  /** The causes of failures, for the log: callers learn only that something failed. */
  | { kind: 'failed'; failures: string[] }
