/** First line of an export (contract.md 5, `GET /v1/strand/export`). */
export interface Manifest {
  agent: string
  /** Hash of the strand's genesis record, 64 hex digits. */
  strand: string
  /** The key in force at the first record. */
  publicKey: string
  fromSeq: number
  /** Seq of the last record; that record is signed, never sealed. */
  toSeq: number
  /** Records of the whole strand but genesis, as the export began. */
  recordCount: number
}

/** One record's line. A sealed one has `sealedBy` in place of `sig`, an erased or withheld one neither salt nor body. */
export interface RecordLine {
  /** The header's exact text. */
  h: string
  sig?: string
  sealedBy?: number
  salt?: string
  body?: string
  /** The body is there, but not for whom the export was made. */
  withheld?: true
}

/** Last line of an export. */
export interface Trailer {
  /** Hash of the last record. */
  chainHead: string
  /** Record lines. */
  records: number
  /** Signed note over the records up to `toSeq`, where the server holds the key that can sign it. */
  checkpoint: string | undefined
}

/** A record's header, read from its exact text (contract.md 4). */
export interface RecordHeader {
  strand: string
  key: string
  seq: number
  prev: string
  hlc: string
  type: string
  /** Body commitment. */
  body: string
}

const HEADER =
  /^strand-record\/v1\nstrand ([0-9a-f]{64})\nkey ([0-9a-f]{64})\nseq (0|[1-9]\d{0,15})\nprev ([0-9a-f]{64})\nhlc ([0-9a-f]{12}-[0-9a-f]{4})\ntype ([a-z0-9_./-]{1,64})\nbody ([0-9a-f]{64})\n$/

/** A colon where `lastIndex` is, white space aside. */
const COLON = /\s*:/y

/** Reads a header; undefined when it is not of the one form. */
export function parseHeader(text: string): RecordHeader | undefined {
  const match = HEADER.exec(text)
  if (match === null) return undefined
  const [, strand = '', key = '', seqText = '', prev = '', hlc = '', type = '', body = ''] = match
  const seq = Number(seqText)
  return Number.isSafeInteger(seq) ? { strand, key, seq, prev, hlc, type, body } : undefined
}

/** Reads a first line; undefined when it is none. */
export function parseManifest(line: string): Manifest | undefined {
  const members = parseFlat(line)
  if (members?.['format'] !== 'strand-export/v1') return undefined
  const { agent, strand, public_key: publicKey, from_seq: fromSeq, to_seq: toSeq } = members
  const recordCount = members['record_count']
  if (typeof agent !== 'string' || !isHex(strand, 64) || !isHex(publicKey, 64)) return undefined
  if (!isCount(fromSeq) || !isCount(toSeq) || !isCount(recordCount)) return undefined
  return { agent, strand, publicKey, fromSeq, toSeq, recordCount }
}

/** Reads any line but the first; undefined when it is neither a record nor a trailer. */
export function parseLine(line: string): { record: RecordLine } | { trailer: Trailer } | undefined {
  const members = parseFlat(line)
  if (members === undefined) return undefined
  const record = typeof members['h'] === 'string' ? readRecord(members['h'], members) : undefined
  if (record !== undefined) return { record }
  const { chain_head: chainHead, records, checkpoint } = members
  if (!isHex(chainHead, 64) || !isCount(records)) return undefined
  if (checkpoint === null) return { trailer: { chainHead, records, checkpoint: undefined } }
  return typeof checkpoint === 'string' ? { trailer: { chainHead, records, checkpoint } } : undefined
}

function readRecord(h: string, members: Record<string, unknown>): RecordLine | undefined {
  const { sig, sealed_by: sealedBy, salt, body, erased, withheld } = members
  // Exactly one of signed and sealed, exactly one of whole, erased and withheld.
  if (sig === undefined ? !isCount(sealedBy) : !isHex(sig, 128) || sealedBy !== undefined) return undefined
  const seal = isHex(sig, 128) ? { sig } : isCount(sealedBy) ? { sealedBy } : {}
  if (erased !== undefined || withheld !== undefined) {
    if (salt !== undefined || body !== undefined) return undefined
    if (erased === true && withheld === undefined) return { h, ...seal }
    return withheld === true && erased === undefined ? { h, ...seal, withheld } : undefined
  }
  if (!isHex(salt, 32) || typeof body !== 'string') return undefined
  return { h, ...seal, salt, body }
}

/** The members of any JSON object; none where the text is not one. */
export function membersOf(text: string | undefined): Record<string, unknown> {
  const value = text === undefined ? undefined : parseJson(text)?.value
  return isMembers(value) ? value : {}
}

/** A JSON text's value in a box, since null is a value too; undefined where the text is not JSON. */
export function parseJson(text: string): { value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return { value }
  } catch {
    return undefined
  }
}

/**
 * A line as one flat object. Strict, so that no line reads otherwise to another parser: a key that stands
 * twice or a lone surrogate makes it no line of an export.
 */
function parseFlat(line: string): Record<string, unknown> | undefined {
  const value = parseJson(line)?.value
  if (!isMembers(value) || Array.isArray(value)) return undefined
  const texts = Object.values(value).filter((member) => typeof member === 'string')
  const isWellFormed = texts.every((text) => !/\p{Surrogate}/u.test(text))
  return keyCount(line) === Object.keys(value).length && isWellFormed ? value : undefined
}

/**
 * Keys in a JSON text: texts with a colon behind them. Of an object within the object they are too many.
 * Not a regular expression, whose stack a text of a million escapes can fill.
 */
function keyCount(json: string): number {
  let keys = 0
  for (let start = json.indexOf('"'); start !== -1;) {
    const end = textEnd(json, start + 1)
    COLON.lastIndex = end + 1
    if (COLON.test(json)) keys += 1
    start = json.indexOf('"', end + 1)
  }
  return keys
}

/** Where the text that began before `from` ends: the first quote with an even number of backslashes before it. */
function textEnd(json: string, from: number): number {
  for (let end = json.indexOf('"', from); end !== -1; end = json.indexOf('"', end + 1)) {
    let backslashes = 0
    while (json[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end
  }
  return json.length
}

function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isHex(value: unknown, digits: number): value is string {
  return typeof value === 'string' && value.length === digits && /^[0-9a-f]*$/.test(value)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
