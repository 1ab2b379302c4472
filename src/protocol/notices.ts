import type { ApiKeyChanges } from './api-key-messages.js'

/**
 * What a shard tells the front thread beside outcomes and events. The notices of a commit come before its outcomes and
 * its events, so that nobody is answered by what it has changed.
 */
export type Notice =
  /** The row policies of agents have changed: what users see by the old ones is to end. */
  | { kind: 'policiesChanged'; agents: string[] }
  /** Records of agents were erased: their bodies are to be forgotten. */
  | { kind: 'erased'; agents: string[] }
  /** Records, by their hashes, were deleted, restored or erased: how they were shown is over. */
  | { kind: 'recordsChanged'; hashes: string[] }
  /** API keys were made or removed. */
  | { kind: 'apiKeysChanged'; changes: ApiKeyChanges }
  /** The strands of agents grew by imported records, of which no event tells. */
  | { kind: 'imported'; agents: string[] }
  /** Something failed of which callers are told no more than that it did: the causes, for the log. */
  | { kind: 'failed'; failures: string[] }
