import { LRUCache } from 'lru-cache'
import { limits } from '../base/limits.js'
import type { UserAccess } from '../protocol/command-options.js'

/** What an entry takes beside its text, about: key, lists and map. */
const ENTRY_BYTES = 352

/** A record that was asked for. */
export interface RecordAddress {
  agent: string
  /** 64 hex digits. */
  hash: string
  /** The user who asks, the same object each time; absent where a key asks. */
  access?: UserAccess
}

interface Entry {
  agent: string
  body: string
  /** Numbers of users whom the shard has shown the record since the last change of policies. */
  readers: number[]
  /** Changes of policies that were known when the readers were. */
  policyChanges: number
}

/** What the cache has done, for metrics. */
export interface RecordCacheFigures {
  hits: number
  misses: number
  bytes: number
}

/**
 * Answers to reading a record by its hash, the ones used longest ago forgotten first. A record never changes, so what
 * must be forgotten is only whether it is deleted or erased: the shard tells of that with the commit that changes it, in
 * order with its answers, and before whoever asked for the change is answered. What users may read is for the shard to
 * decide: one is answered from here what the shard has shown it before, until any policies change.
 */
export class RecordCache {
  /** By hash; undefined where the cache is off. */
  readonly #answers: LRUCache<string, Entry> | undefined
  /** Users by number, so that an entry keeps none in memory. */
  readonly #users = new WeakMap<UserAccess, number>()
  #usersSeen = 0
  #policyChanges = 0
  #hits = 0
  #misses = 0

  /** `bytesMax`: of the texts and what keeps them; 0 is off. */
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

  /** The answer that is known for a record. */
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

  /** Forgets records that were deleted, restored or erased. */
  forget(hashes: readonly string[]): void {
    for (const hash of hashes) this.#answers?.delete(hash)
  }

  /** Forgets what users may read: policies of an agent have changed. */
  forgetReaders(): void {
    this.#policyChanges += 1
  }

  /** Forgets all: what a shard committed last before it died may never have been told. */
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
