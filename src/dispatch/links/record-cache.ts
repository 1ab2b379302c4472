import { LRUCache } from 'lru-cache'
import { limits } from '../../base/limits/limits.js'
import type { UserAccess } from '../../protocol/command-options.js'

/** The approximate overhead of an entry: key, lists and map. */
const ENTRY_BYTES = 352

export interface RecordAddress {
  agent: string
  /** 64 hex digits. */
  hash: string
  /** The user who reads, the same object each time; absent for a key. */
  access?: UserAccess
}

interface Entry {
  agent: string
  body: string
  /** Numbers of users to whom the shard has shown the record since the last change of policies. */
  readers: number[]
  /** The number of policy changes when `readers` was last updated. */
  policyChanges: number
}

export interface RecordCacheFigures {
  hits: number
  misses: number
  bytes: number
}

/**
 * An LRU cache of records by hash. A record never changes, so an answer is dropped only when the record is
 * deleted, restored or erased. The shard sends this with the commit, in order with its answers, and before
 * the caller that changed the record gets its answer. The shard decides what users may read: the cache shows
 * a user only records that the shard has shown that user since the last change of policies.
 */
export class RecordCache {
  /** By hash; undefined when the cache is off. */
  readonly #answers: LRUCache<string, Entry> | undefined
  /** Numbers of users, so that an entry does not retain a user in memory. */
  readonly #users = new WeakMap<UserAccess, number>()
  #usersSeen = 0
  #policyChanges = 0
  #hits = 0
  #misses = 0

  /** @param bytesMax bytes of the texts and their overhead; 0 turns the cache off */
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

  find({ agent, hash, access }: RecordAddress): string | undefined {
    const known = this.#answers?.get(hash)
    if (known !== undefined && known.agent === agent && this.#mayRead(known, access)) {
      this.#hits += 1
      return known.body
    }
    this.#misses += 1
    return undefined
  }

  keep({ agent, hash, access }: RecordAddress, body: string): void {
    if (this.#answers === undefined) return
    const known = this.#answers.peek(hash)
    if (known === undefined || known.body !== body) {
      // A copy, because the text is a slice that would retain its whole frame.
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

  /** Forgets which users may read which records, after a change of policies. */
  forgetReaders(): void {
    this.#policyChanges += 1
  }

  /** Drops everything, because the notices of a dead shard's last commit may never arrive. */
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
