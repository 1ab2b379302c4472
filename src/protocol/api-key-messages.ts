import { isText, members, oneOf, type Check } from '../base/shape.js'
import type { WriteOptions } from './command-options.js'
import type { ProposedAs } from './proposal-messages.js'

/* Messages about scoped API keys, which the first shard keeps together with the strand that records them. */

/** Makes a scoped key. The shard draws it, so that a repeated request is the same. */
export interface ApiKeyCreate {
  kind: 'apiKeyCreate'
  name: string
  scopes: string[]
  agents: string[]
  /** Seconds until it expires; never when absent. */
  expiresInSecs?: number
  /** Id of the principal who makes it. */
  maker: string
  options: WriteOptions
}

/** A page of keys, in the order of their ids. */
export interface ApiKeyList {
  kind: 'apiKeyList'
  /** The id after which it begins; empty for the beginning. */
  after: string
  limit: number
  /** This one alone, if it is there. */
  keyId?: string
}

export interface ApiKeyDelete {
  kind: 'apiKeyDelete'
  keyId: string
  /** Id of the principal who deletes it. */
  maker: string
  options: WriteOptions
}

/** Stores when existing keys were last used, Unix milliseconds by id. Answered by `done`. */
export interface ApiKeysUsed {
  kind: 'apiKeysUsed'
  uses: [keyId: string, atMs: number][]
  options: WriteOptions
}

/** A scoped key as it is stored: its SHA-256, never the key. */
export interface ApiKeyRow {
  keyId: string
  name: string
  scopes: string[]
  agents: string[]
  digest: string
  createdAtMs: number
  /** Id of the principal who made it; `root` for keys of versions that did not store it. */
  madeBy: string
  /** The first key of its line, which is the key itself if no other key made it (docs/adr/0033-lines-of-keys.md). */
  line: string
  /** When it stops working; never when absent. */
  expiresAtMs?: number
  /** When it was last used, as far as that is stored; never when absent. */
  lastUsedAtMs?: number
}

export interface ApiKeysOutcome {
  kind: 'apiKeys'
  rows: ApiKeyRow[]
  /** Whether there are more after the last one. */
  more: boolean
}

/** A scoped key that was made, with the key itself; its idempotent answer is stored sealed only. */
export interface ApiKeyMadeOutcome {
  kind: 'apiKeyMade'
  row: ApiKeyRow
  key: string
  /** Present if it has to be approved first. */
  proposed?: ProposedAs
  /** False for an idempotent answer whose key was deleted since, and while the key is proposed. */
  live: boolean
  replayed?: boolean
}

const isMade = members<{ kind: 'apiKeyMade'; row: { keyId: string; digest: string }; key: string }>({
  kind: oneOf('apiKeyMade'),
  row: members({ keyId: isText, digest: isText }),
  key: isText,
})

/** Whether a value is the answer that shows a key; answers of earlier versions lack some members. */
export const isApiKeyMade: Check<ApiKeyMadeOutcome> = (value): value is ApiKeyMadeOutcome => isMade(value)

/** Keys that a commit has made or removed; sent before its outcomes. */
export interface ApiKeyChanges {
  made: ApiKeyRow[]
  gone: string[]
}
