import type { ApiKeyChanges } from './api-key-messages.js'
import type { Revocation } from './auth-messages.js'

/**
 * A notice of a shard to the fronts. Every front processes the notices of a commit before any caller gets its
 * outcomes and events, so that no answer uses state that the commit has changed (docs/adr/0045-fronts.md).
 */
export type Notice =
  /** The row policies of agents have changed: streams and cached answers under the old ones must end. */
  | { kind: 'policiesChanged'; agents: string[] }
  /** Records of agents were erased: their bodies must be dropped from memory. */
  | { kind: 'erased'; agents: string[] }
  /**
   * Records, by their hashes, were deleted, restored or erased: answers that show them must be dropped from
   * memory.
   */
  | { kind: 'recordsChanged'; hashes: string[] }
  /** API keys were made or removed. */
  | { kind: 'apiKeysChanged'; changes: ApiKeyChanges }
  /** Sessions, tokens or users have ended: their tokens must be refused. */
  | { kind: 'ended'; revocations: (Revocation & { namespace: string })[] }
  /** The signing keys of namespaces were rotated. */
  | { kind: 'rotated'; namespaces: string[] }
  /** Imported records were appended to the strands of agents, without events. */
  | { kind: 'imported'; agents: string[] }
  /** A store was rebuilt from the cluster log. `place` is where a store of another history was moved. */
  | { kind: 'storeBuilt'; place?: string }
  /** The causes of failures, for the log: callers only see that an operation failed. */
  | { kind: 'failed'; failures: string[] }
