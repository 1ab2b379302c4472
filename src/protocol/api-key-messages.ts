import {
  isKeyNumber,
  isText,
  listOf,
  members,
  oneOf,
  optional,
  type Check,
  type Checked,
  fields,
} from '../base/shape.js'
import type { WriteOptions } from './command-options.js'
import type { ProposedAs } from './proposal-messages.js'

/* Messages about scoped API keys. The first shard stores them with the strand that records them. */

/** Creates a scoped key. The shard draws it, so that a repeated request returns the same key. */
export interface ApiKeyCreate {
  kind: 'apiKeyCreate'
  name: string
  scopes: string[]
  agents: string[]
  /** Seconds until the key expires; never when absent. */
  expiresInSecs?: number
  /** The id of the principal that creates the key. */
  maker: string
  options: WriteOptions
}

export interface ApiKeyList {
  kind: 'apiKeyList'
  /** The page starts after this id; empty for the first page. */
  after: string
  limit: number
  /** Lists only this key, if it exists. */
  keyId?: string
}

export interface ApiKeyDelete {
  kind: 'apiKeyDelete'
  keyId: string
  /** The id of the principal that deletes the key. */
  maker: string
  options: WriteOptions
}

/** Stores the last use of existing keys, Unix milliseconds by id. Answered by `done`. */
export interface ApiKeysUsed {
  kind: 'apiKeysUsed'
  uses: [keyId: string, atMs: number][]
  options: WriteOptions
}

export const isStoredApiKey = fields({
  keyId: isText,
  name: isText,
  scopes: listOf(isText),
  agents: listOf(isText),
  digest: isText,
  createdAtMs: isKeyNumber,
  /** The id of the principal that created the key; versions in which only root created keys did not store it. */
  madeBy: optional(isText),
  /** The first key of its lineage, by default the key itself (docs/adr/0033-lines-of-keys.md). */
  line: optional(isText),
  /** When the key expires; never when absent. */
  expiresAtMs: optional(isKeyNumber),
  /** The last stored use; absent for an unused key. */
  lastUsedAtMs: optional(isKeyNumber),
  /** The version of the scopes. */
  scopeSet: optional(isKeyNumber),
})

type StoredApiKey = Checked<typeof isStoredApiKey>

/** A scoped key as it is stored, by its SHA-256 without the key. */
export type ApiKeyRow = Omit<StoredApiKey, 'madeBy' | 'line' | 'scopeSet'> &
  Required<Pick<StoredApiKey, 'madeBy' | 'line'>>

export interface ApiKeysOutcome {
  kind: 'apiKeys'
  rows: ApiKeyRow[]
  more: boolean
}

/** A new scoped key with the key itself. Its idempotent answer is only stored sealed. */
export interface ApiKeyMadeOutcome {
  kind: 'apiKeyMade'
  row: ApiKeyRow
  key: string
  /** Present if the key must be approved first. */
  proposed?: ProposedAs
  /** False while the key is proposed, and for an idempotent answer whose key was deleted since. */
  live: boolean
  replayed?: boolean
}

const isMade = members<{ kind: 'apiKeyMade'; row: { keyId: string; digest: string }; key: string }>({
  kind: oneOf('apiKeyMade'),
  row: members({ keyId: isText, digest: isText }),
  key: isText,
})

/** Checks the answer that shows a key; answers of earlier versions lack some members. */
export const isApiKeyMade: Check<ApiKeyMadeOutcome> = (value): value is ApiKeyMadeOutcome => isMade(value)

/** Keys that a commit has created or removed; sent before its outcomes. */
export interface ApiKeyChanges {
  created: ApiKeyRow[]
  removed: string[]
}

export type ApiKeyCommand = ApiKeyCreate | ApiKeyList | ApiKeyDelete | ApiKeysUsed

export type ApiKeyOutcome = ApiKeysOutcome | ApiKeyMadeOutcome
