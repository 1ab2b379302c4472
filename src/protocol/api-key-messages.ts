import type { WriteOptions } from './messages.js'

/* What the front thread asks of scoped API keys, which the first shard keeps. */

/** Makes a scoped key. The shard draws it, so that what is asked is the same when it is asked again. */
export interface ApiKeyCreate {
  kind: 'apiKeyCreate'
  name: string
  scopes: string[]
  agents: string[]
  options: WriteOptions
}

export interface ApiKeyList {
  kind: 'apiKeyList'
}

export interface ApiKeyDelete {
  kind: 'apiKeyDelete'
  keyId: string
  options: WriteOptions
}

/** A scoped key as it is kept: its SHA-256, never the key (contract.md 1, Scoped keys). */
export interface ApiKeyRow {
  keyId: string
  name: string
  scopes: string[]
  agents: string[]
  digest: string
  createdAtMs: number
}

export interface ApiKeysOutcome {
  kind: 'apiKeys'
  rows: ApiKeyRow[]
}

/** A scoped key that was made, with the key itself: kept for its Idempotency-Key sealed only. */
export interface ApiKeyMadeOutcome {
  kind: 'apiKeyMade'
  row: ApiKeyRow
  key: string
  /** False for an answer from before whose key was deleted since. */
  live: boolean
  replayed?: boolean
}
