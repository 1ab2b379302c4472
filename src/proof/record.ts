import { genesisType, keyRotateType } from '../strand/record-type.js'
import { rotationProofText, parseHeader, type RecordHeader } from '../strand/header.js'
import type { RecordLine, Trailer } from '../strand/strand-export.js'
import { verifies } from './ed25519.js'
import { isBlankLine, parseLine } from './export-lines.js'
import { fromHex, isHex, joined, textOf, utf8 } from './hex.js'
import { type Check, hex } from './job.js'
import { isMembers, readBodyJson } from './strict-json.js'

/** A record of an export as it is checked. Its bytes are valid until the next line is read. */
export interface ReadRecord {
  /** Undefined where `h` is not a header. */
  header: RecordHeader | undefined
  /** The header's exact text. */
  h: string
  /** 0x00 ‖ H, whose SHA-256 is the record's hash. */
  leaf: Uint8Array
  /** Signature, 128 hex digits. */
  sig: string | undefined
  /** Seq of the signed record that covers this one. */
  sealedBy: number | undefined
  /** Undefined where the body is erased or withheld. */
  content: ReadContent | undefined
  withheld: boolean
}

/** The body of a record. */
export interface ReadContent {
  /** The bytes that the body commitment hashes: prefix, salt and body. */
  committed: Uint8Array
}

/** What a line after the first says; undefined when it is neither a record nor a trailer nor blank. */
export type ReadLine = { record: ReadRecord } | { trailer: Trailer } | { blank: true } | undefined

/** What can be checked of one record without those before it: the slow part. */
export interface ExaminedRecord {
  /** 64 hex digits; empty where there is no valid header. */
  hash: string
  /** Whether the body is the one that the header commits to. */
  bodyMatches: boolean
  /** Whether its own signature verifies by the key that its header names; undefined where it was not checked. */
  signed: boolean | undefined
  /** For a key rotation: the new key, if it is proven for the strand. */
  newKey: string | undefined
}

/** How a record is examined. */
export interface Examination {
  /** The strand that is checked; a new key has to be proven for it. */
  strand: string
  /** Whether the record's own signature is verified. */
  signature: boolean
}

const commitmentPrefix = utf8('strand-body/v1\n')
const SALT_BYTES = 16
const BODY_AT = commitmentPrefix.length + SALT_BYTES

/** The exact text of a body. */
export function bodyText({ committed }: ReadContent): string {
  return textOf(committed.subarray(BODY_AT))
}

/** The members of a body that is a JSON object; none for any other body. */
export function bodyMembers(content: ReadContent | undefined): Record<string, unknown> {
  const value = content && readBodyJson(bodyText(content))?.value
  return isMembers(value) ? value : {}
}

/** Reads a line from its text: any JSON that a line may be. */
export function readLineText(text: string): ReadLine {
  if (isBlankLine(text)) return { blank: true }
  const parsed = parseLine(text)
  return parsed !== undefined && 'record' in parsed ? { record: readRecord(parsed.record) } : parsed
}

/** A record of an export, read from its members. */
export function readRecord({ h, sig, sealedBy, salt, body, withheld }: RecordLine): ReadRecord {
  const content =
    salt === undefined || body === undefined
      ? undefined
      : { committed: joined(commitmentPrefix, fromHex(salt), utf8(body)) }
  return {
    header: parseHeader(h),
    h,
    leaf: utf8(`\0${h}`),
    sig,
    sealedBy,
    content,
    withheld: withheld === true,
  }
}

/** Computes what can be checked of a record by itself; many can run at once. */
export function* examineRecord(
  record: ReadRecord,
  { strand, signature }: Examination,
): Check<ExaminedRecord> {
  const { header, leaf, sig, content } = record
  if (header === undefined) return { hash: '', bodyMatches: false, signed: false, newKey: undefined }
  // Yielded here instead of by `hashOf`: one generator less for each of many records.
  const hash = hex(yield { kind: 'hash', bytes: leaf })
  const bodyMatches =
    content !== undefined && (yield { kind: 'hash', bytes: content.committed }) === header.body
  let signed: boolean | undefined = false
  if (sig !== undefined) signed = signature ? yield* verifies(header.key, leaf.subarray(1), sig) : undefined
  const newKey = header.type === keyRotateType && bodyMatches ? yield* provenKey(record, strand) : undefined
  return { hash, bodyMatches, signed, newKey }
}

function* provenKey({ content }: ReadRecord, strand: string): Check<string | undefined> {
  const named = namedKey(content)
  if (named === undefined) return undefined
  const { publicKey, proof } = named
  const text = utf8(rotationProofText(strand, publicKey))
  return (yield* verifies(publicKey, text, proof)) ? publicKey : undefined
}

/** The key and proof that a key rotation names; undefined where it does not name both. */
export function namedKey(content: ReadContent | undefined): { publicKey: string; proof: string } | undefined {
  const { public_key: publicKey, proof } = bodyMembers(content)
  return isHex(publicKey, 64) && isHex(proof, 128) ? { publicKey, proof } : undefined
}

/** Whether a record names a key of the strand, without which no verifier could continue. */
export function namesKey({ type }: RecordHeader): boolean {
  return type === genesisType || type === keyRotateType
}
