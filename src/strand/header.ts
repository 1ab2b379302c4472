import { recordTypePattern } from './record-type.js'

/**
 * The hashed and signed lines of a record (docs/FORMAT.md, Header). Hashes and keys are 64 lower-case hex
 * digits.
 */
export interface RecordHeader {
  /** Hash of the genesis record of the strand; `zeroHash` in the genesis record. */
  strand: string
  /** The Ed25519 public key of the agent at this record. */
  key: string
  /** 0 for genesis, then one more each. */
  seq: number
  /** Hash of the previous record; `zeroHash` in the genesis record. */
  prev: string
  /** Hybrid logical clock, `<12 hex>-<4 hex>`. */
  hlc: string
  /** `[a-z0-9_./-]{1,64}` */
  type: string
  /** Body commitment, see `bodyCommitment`. */
  body: string
}

/** The `strand` and `prev` of a genesis record. */
export const zeroHash = '0'.repeat(64)

/** The exact text H of a header: ASCII, each line ended by LF (docs/FORMAT.md, Header). */
export function headerText(header: RecordHeader): string {
  return linesOf(header, '\n')
}

/** The same as a JSON string. */
export function headerJson(header: RecordHeader): string {
  return `"${linesOf(header, '\\n')}"`
}

function linesOf({ strand, key, seq, prev, hlc, type, body }: RecordHeader, end: string): string {
  return (
    `strand-record/v1${end}strand ${strand}${end}key ${key}${end}seq ${seq}${end}prev ${prev}${end}` +
    `hlc ${hlc}${end}type ${type}${end}body ${body}${end}`
  )
}

const headerPattern = new RegExp(
  '^strand-record/v1\\nstrand ([0-9a-f]{64})\\nkey ([0-9a-f]{64})\\nseq (0|[1-9][0-9]{0,15})\\n' +
    `prev ([0-9a-f]{64})\\nhlc ([0-9a-f]{12}-[0-9a-f]{4})\\ntype (${recordTypePattern})\\nbody ([0-9a-f]{64})\\n$`,
)

/** Parses a header; undefined unless `headerText` returns the same text for the result. */
export function parseHeader(text: string): RecordHeader | undefined {
  const match = headerPattern.exec(text)
  if (match === null) return undefined
  const [, strand = '', key = '', seqText = '', prev = '', hlc = '', type = '', body = ''] = match
  const header = { strand, key, seq: Number(seqText), prev, hlc, type, body }
  return Number.isSafeInteger(header.seq) && headerText(header) === text ? header : undefined
}

/**
 * The text that a new key signs to prove its possession, for one strand only.
 * @param strand 64 hex digits
 * @param publicKey the new key, 64 hex digits
 */
export function rotationProofText(strand: string, publicKey: string): string {
  return `strand-key-rotate/v1\n${strand}\n${publicKey}\n`
}
