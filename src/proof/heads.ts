import type { LoggedHead } from '../strand/server-log.js'
import { headsType } from '../strand/record-type.js'
import { isCount, isHex } from './hex.js'
import { readCountingBody } from './strict-json.js'

/** Heads in one record of the server log. */
const HEADS_MAX = 256

const HLC = /^[0-9a-f]{12}-[0-9a-f]{4}$/

/** The parsed body of a record of the server log (docs/FORMAT.md, The server log). */
export interface ParsedHeads {
  /** For each shard, the timestamp up to which all heads are in the log. */
  clocks: string[]
  heads: LoggedHead[]
}

interface LogRecord {
  seq: number
  type: string
  /** Undefined if it is erased or withheld. */
  body: string | undefined
}

/**
 * Parses the body of a `sys/heads` record; undefined unless it has at most 256 heads, all of different
 * strands.
 */
export function readHeads(body: string): ParsedHeads | undefined {
  const { clocks, heads } = readCountingBody(body)
  if (!Array.isArray(clocks) || !Array.isArray(heads) || heads.length > HEADS_MAX) return undefined
  const parsed = heads.map(readHead)
  const strands = new Set(parsed.map((head) => head?.strand))
  const isValid =
    clocks.every(isClock) && parsed.every((head) => head !== undefined) && strands.size === parsed.length
  return isValid
    ? { clocks: clocks.filter(isClock), heads: parsed.filter((head) => head !== undefined) }
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
 * Reads the heads of one strand from the records of a server log, beginning with the first. Every record
 * except genesis must be readable, because an unreadable one could name a longer strand. The sizes must
 * increase.
 */
export class StrandHeads {
  readonly #strand: string
  readonly #before: number
  #last = 0
  #settled: LoggedHead | undefined

  /** @param before the records of the log that an earlier checkpoint covers, which cannot have changed */
  constructor(strand: string, before: number) {
    this.#strand = strand
    this.#before = before
  }

  /** The last head of the strand within the records of the checkpoint. */
  get headAtCheckpoint(): LoggedHead | undefined {
    return this.#settled
  }

  /** Reads the next record of the log. @returns its head of the strand, if any, or its fault */
  take({ seq, type, body }: LogRecord): { head: LoggedHead | undefined } | { fault: string } {
    if (seq === 0) return { head: undefined }
    if (type !== headsType) return { fault: `Record ${seq} of the log is not of heads` }
    if (body === undefined) return { fault: `Record ${seq} of the log has no body` }
    const parsed = readHeads(body)
    if (parsed === undefined) return { fault: `Record ${seq} of the log cannot be read` }
    const head = parsed.heads.find(({ strand }) => strand === this.#strand)
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

  /** The fault of a strand with `size` records according to the checkpoint, or undefined. */
  fault(size: number): string | undefined {
    if (this.#settled === undefined) return `The log of ${this.#before} records does not tell of this strand`
    if (this.#settled.size <= size) return undefined
    return `The tail was cut: the log told of ${this.#settled.size} records, the export has ${size}`
  }
}

/**
 * The fault of a strand whose record `size` - 1 has the hash `found`, according to a head in the log, or
 * undefined.
 */
export function headFault({ size, hash }: LoggedHead, found: string | undefined): string | undefined {
  if (found === undefined) return `The log tells of record ${size - 1}, which the export leaves out`
  return found === hash
    ? undefined
    : `The strand was forked at or before record ${size - 1}: the log told of another`
}
