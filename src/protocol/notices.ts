import type { ApiKeyChanges } from './api-key-messages.js'
import type { Revocation } from './auth-messages.js'

/**
 * What a shard tells the fronts besides outcomes and events. Every front has processed the notices of a commit before
 * anyone gets its outcomes and events, so that no answer uses state that the commit has changed
 * (docs/adr/0045-fronts.md).
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
  /** Sessions, tokens or users have ended: their tokens must be refused. */
  | { kind: 'ended'; revocations: (Revocation & { namespace: string })[] }
  /** The signing keys of namespaces were rotated. */
  | { kind: 'rotated'; namespaces: string[] }
  /** The strands of agents grew by imported records, for which there are no events. */
  | { kind: 'imported'; agents: string[] }
  /** The store of a node was made anew from the log of its cluster; `place` is where one of another history was moved. */
  | { kind: 'storeBuilt'; place?: string }
  /** The causes of failures, for the log: callers learn only that something failed. */
  | { kind: 'failed'; failures: string[] }
