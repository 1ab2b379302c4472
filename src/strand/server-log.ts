import { formatHlc, parseHlc, type Hlc } from './hlc.js'
import { canonicalJson } from './json.js'

/** The type of the records of the server log (docs/FORMAT.md, The server log). */
export const headsType = 'sys/heads'

/** Where a strand stood: the hash commits by `prev` to every record before. */
export interface LoggedHead {
  /** Hash of the genesis record, 64 hex digits. */
  strand: string
  /** Records, genesis counted: the seq of the last one plus 1. */
  size: number
  /** Hash of the last record, 64 hex digits. */
  hash: string
}

/** What one record of the server log tells. */
export interface HeadsRecord {
  /** For each shard, up to which clock all heads are in the log. */
  clocks: readonly Hlc[]
  heads: readonly LoggedHead[]
}

/** The body of a record of the server log: `{"clocks":[hlc…],"heads":[[strand,size,hash]…]}`, canonical. */
export function headsBody({ clocks, heads }: HeadsRecord): string {
  return canonicalJson({
    clocks: clocks.map(formatHlc),
    heads: heads.map(({ strand, size, hash }) => [strand, size, hash]),
  })
}

/** Reads such a body; undefined when it is none. */
export function parseHeadsBody(text: string): HeadsRecord | undefined {
  const value = parsed(text)
  if (typeof value !== 'object' || value === null || !('clocks' in value && 'heads' in value))
    return undefined
  if (!Array.isArray(value.clocks) || !Array.isArray(value.heads)) return undefined
  const clocks = value.clocks.map((one: unknown) => (typeof one === 'string' ? parseHlc(one) : undefined))
  const heads = value.heads.map(parseHead)
  if (!clocks.every((one) => one !== undefined) || !heads.every((one) => one !== undefined)) return undefined
  return { clocks, heads }
}

function parseHead(value: unknown): LoggedHead | undefined {
  if (!Array.isArray(value) || value.length !== 3) return undefined
  const [strand, size, hash]: unknown[] = value
  if (!isHash(strand) || !isHash(hash) || typeof size !== 'number') return undefined
  return Number.isSafeInteger(size) && size > 0 ? { strand, size, hash } : undefined
}

function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
