import type { LoggedHead } from '../strand/server-log.js'
import { headsType } from '../strand/record-type.js'
import { isCount, isHex } from './hex.js'
import { readCountingBody } from './strict-json.js'

/** The most heads in one record of the server log. */
const HEADS_MAX = 256

const HLC = /^[0-9a-f]{12}-[0-9a-f]{4}$/

/** What a record of the server log says (docs/FORMAT.md, The server log). */
export interface ToldRecord {
  /** For each shard, the clock up to which all heads are in the log. */
  clocks: string[]
  heads: LoggedHead[]
}

/** The parts of a log's record that are needed to read its heads. */
interface LogRecord {
  seq: number
  type: string
  /** Undefined where it is erased or withheld. */
  body: string | undefined
}

/**
 * Reads the body of a `sys/heads` record; undefined when it is not one: it names a strand once, and at most 256
 * strands.
 */
export function readHeads(body: string): ToldRecord | undefined {
  const { clocks, heads } = readCountingBody(body)
  if (!Array.isArray(clocks) || !Array.isArray(heads) || heads.length > HEADS_MAX) return undefined
  const told = heads.map(readHead)
  const strands = new Set(told.map((head) => head?.strand))
  const isSound =
    clocks.every(isClock) && told.every((head) => head !== undefined) && strands.size === told.length
  return isSound
    ? { clocks: clocks.filter(isClock), heads: told.filter((head) => head !== undefined) }
    : undefined
}

function isClock(value: unknown): value is string {
  return typeof value === 'string' && HLC.test(value)
}

function readHead(value: unknown): LoggedHead | undefined {
  if (!Array.isArray(value) || value.length !== 3) return undefined
  const [strand, size, hash]: unknown[] = value
  return isHex(strand, 64) && isHex(hash, 64) && isCount(size) && size > 0
    ? { strand, size, hash }
    : undefined
}

/**
 * Reads what a server log says about one strand, record by record from the first. Every record but genesis has to be
 * readable, since one whose body is missing could be the one that names a longer strand, and sizes only rise.
 */
export class ToldHeads {
  readonly #strand: string
  readonly #before: number
  #last = 0
  #settled: LoggedHead | undefined

  /** @param before how many records of the log a kept checkpoint counts: what they say cannot change any more */
  constructor(strand: string, before: number) {
    this.#strand = strand
    this.#before = before
  }

  /** The last head that the records of the checkpoint name. */
  get settled(): LoggedHead | undefined {
    return this.#settled
  }

  /** Takes the next record of the log. @returns the head of the strand that it names, or what is wrong with it */
  take({ seq, type, body }: LogRecord): { head: LoggedHead | undefined } | { fault: string } {
    if (seq === 0) return { head: undefined }
    if (type !== headsType) return { fault: `Record ${seq} of the log is not of heads` }
    if (body === undefined) return { fault: `Record ${seq} of the log has no body` }
    const told = readHeads(body)
    if (told === undefined) return { fault: `Record ${seq} of the log cannot be read` }
    const head = told.heads.find(({ strand }) => strand === this.#strand)
    if (head === undefined) return { head }
    if (head.size <= this.#last) {
      return {
        fault: `Record ${seq} of the log tells of ${head.size} records, ${this.#last} were told before`,
      }
    }
    this.#last = head.size
    if (seq < this.#before) this.#settled = head
    return { head }
  }

  /** What is wrong with a strand of this many records, by the records of the checkpoint; undefined where nothing is. */
  fault(size: number): string | undefined {
    if (this.#settled === undefined) return `The log of ${this.#before} records does not tell of this strand`
    if (this.#settled.size <= size) return undefined
    return `The tail was cut: the log told of ${this.#settled.size} records, the export has ${size}`
  }
}

/** What is wrong with a strand whose record `head.size` - 1 has this hash, by a head that the log names. */
export function headFault({ size, hash }: LoggedHead, found: string | undefined): string | undefined {
  if (found === undefined) return `The log tells of record ${size - 1}, which the export leaves out`
  return found === hash
    ? undefined
    : `The strand was forked at or before record ${size - 1}: the log told of another`
}
