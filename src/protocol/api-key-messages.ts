import { isText, members, oneOf, type Check } from '../base/shape.js'
import type { WriteOptions } from './command-options.js'
import type { ProposedAs } from './proposal-messages.js'

/* What the front thread asks of scoped API keys, which the first shard keeps beside the strand that tells of them. */

/** Makes a scoped key. The shard draws it, so that what is asked is the same when it is asked again. */
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
  /** The id behind which it begins; empty for the beginning. */
  after: string
  limit: number
}

export interface ApiKeyDelete {
  kind: 'apiKeyDelete'
  keyId: string
  /** Id of the principal who deletes it. */
  maker: string
  options: WriteOptions
}

/** Keeps when keys were last used: the ids of those that are there, Unix milliseconds. Answered by `done`. */
export interface ApiKeysUsed {
  kind: 'apiKeysUsed'
  uses: [keyId: string, atMs: number][]
  options: WriteOptions
}

/** A scoped key as it is kept: its SHA-256, never the key. */
export interface ApiKeyRow {
  keyId: string
  name: string
  scopes: string[]
  agents: string[]
  digest: string
  createdAtMs: number
  /** Id of the principal who made it. Those of before makers were kept count as made by `root`. */
  madeBy: string
  /** The first key of its line: itself where no other key made it (docs/adr/0033-lines-of-keys.md). */
  line: string
  /** When it stops working; never when absent. */
  expiresAtMs?: number
  /** When it was last used, as far as that is kept; never when absent. */
  lastUsedAtMs?: number
}

export interface ApiKeysOutcome {
  kind: 'apiKeys'
  rows: ApiKeyRow[]
  /** Whether there are more behind the last one. */
  more: boolean
}

/** A scoped key that was made, with the key itself: kept for its Idempotency-Key sealed only. */
export interface ApiKeyMadeOutcome {
  kind: 'apiKeyMade'
  row: ApiKeyRow
  key: string
  /** It is to be approved first. */
  proposed?: ProposedAs
  /** False for an answer from before whose key was deleted since, and while it is proposed. */
  live: boolean
  replayed?: boolean
}

const isMade = members<{ kind: 'apiKeyMade'; row: { keyId: string; digest: string }; key: string }>({
  kind: oneOf('apiKeyMade'),
  row: members({ keyId: isText, digest: isText }),
  key: isText,
})

/** Whether a value is the answer that shows a key; those that earlier versions kept lack some members. */
export const isApiKeyMade: Check<ApiKeyMadeOutcome> = (value): value is ApiKeyMadeOutcome => isMade(value)

/** Keys that a commit has made or removed: told before its outcomes. */
export interface ApiKeyChanges {
  made: ApiKeyRow[]
  gone: string[]
}
