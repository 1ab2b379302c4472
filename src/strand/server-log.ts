import { formatHlc, type Hlc } from './hlc.js'
import { canonicalJson } from './json.js'

/** The head of a strand in the server log. Through `prev`, the hash commits to all records before. */
export interface LoggedHead {
  /** Hash of the genesis record, 64 hex digits. */
  strand: string
  /** Records including genesis: the seq of the last one plus 1. */
  size: number
  /** Hash of the last record, 64 hex digits. */
  hash: string
}

export interface HeadsRecord {
  /** For each shard, the timestamp up to which all heads are in the log. */
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
