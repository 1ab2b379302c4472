import { LRUCache } from 'lru-cache'
import { limits } from '../../base/limits/limits.js'
import type { UserAccess } from '../../protocol/command-options.js'

/** About what an entry takes besides its text: key, lists and map. */
const ENTRY_BYTES = 352

/** A record that was asked for. */
export interface RecordAddress {
  agent: string
  /** 64 hex digits. */
  hash: string
  /** The user who asks, the same object each time; absent if a key asks. */
  access?: UserAccess
}

interface Entry {
  agent: string
  body: string
  /** Numbers of users whom the shard has shown the record since the last change of policies. */
  readers: number[]
  /** How many changes of policies there had been when the readers were noted. */
  policyChanges: number
}

/** Counts of the cache, for metrics. */
export interface RecordCacheFigures {
  hits: number
  misses: number
  bytes: number
}

/**
 * Answers to reading a record by its hash; the least recently used are dropped first. A record never changes, so an
 * answer has to be dropped only when the record is deleted, restored or erased: the shard sends that with the commit,
 * in order with its answers, and before the caller who asked for the change is answered. The shard decides what users
 * may read: a user gets from here only what the shard has shown that user before, until any policies change.
 */
export class RecordCache {
  /** By hash; undefined where the cache is off. */
  readonly #answers: LRUCache<string, Entry> | undefined
  /** Numbers of users, so that an entry does not keep a user in memory. */
  readonly #users = new WeakMap<UserAccess, number>()
  #usersSeen = 0
  #policyChanges = 0
  #hits = 0
  #misses = 0

  /** `bytesMax` counts the texts and what they need besides; 0 is off. */
  constructor(bytesMax: number) {
    if (bytesMax === 0) return
    this.#answers = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ body }) => body.length + ENTRY_BYTES,
    })
  }

  get figures(): RecordCacheFigures {
    return { hits: this.#hits, misses: this.#misses, bytes: this.#answers?.calculatedSize ?? 0 }
  }

  /** The cached answer for a record. */
  find({ agent, hash, access }: RecordAddress): string | undefined {
    const known = this.#answers?.get(hash)
    if (known !== undefined && known.agent === agent && this.#mayRead(known, access)) {
      this.#hits += 1
      return known.body
    }
    this.#misses += 1
    return undefined
  }

  /** Keeps the answer to reading a record. */
  keep({ agent, hash, access }: RecordAddress, body: string): void {
    if (this.#answers === undefined) return
    const known = this.#answers.peek(hash)
    if (known === undefined || known.body !== body) {
      // A copy: the text is a slice of its whole frame, and would keep all of that in memory.
      const copy = Buffer.from(body).toString()
      const readers = access === undefined ? [] : [this.#numberOf(access)]
      this.#answers.set(hash, { agent, body: copy, readers, policyChanges: this.#policyChanges })
    } else if (access !== undefined) {
      const before = known.policyChanges === this.#policyChanges ? known.readers : []
      known.readers = [...before.slice(1 - limits.recordReadersMax), this.#numberOf(access)]
      known.policyChanges = this.#policyChanges
    }
  }

  /** Drops records that were deleted, restored or erased. */
  forget(hashes: readonly string[]): void {
    for (const hash of hashes) this.#answers?.delete(hash)
  }

  /** Drops what users may read, after a change of policies. */
  forgetReaders(): void {
    this.#policyChanges += 1
  }

  /** Drops everything: the notices of a shard's last commit before it died may never have arrived. */
  clear(): void {
    this.#answers?.clear()
  }

  #mayRead({ readers, policyChanges }: Entry, access: UserAccess | undefined): boolean {
    if (access === undefined) return true
    return policyChanges === this.#policyChanges && readers.includes(this.#numberOf(access))
  }

  #numberOf(access: UserAccess): number {
    const known = this.#users.get(access)
    if (known !== undefined) return known
    this.#users.set(access, ++this.#usersSeen)
    return this.#usersSeen
  }
}
