import { genesisType, keyRotateType } from '../strand/record-type.js'
import { rotationProofText, parseHeader, type RecordHeader } from '../strand/header.js'
import type { RecordLine, Trailer } from '../strand/strand-export.js'
import { verifies } from './ed25519.js'
import { isBlankLine, parseLine } from './export-lines.js'
import { fromHex, isHex, joined, textOf, utf8 } from './hex.js'
import { type Check, hex } from './job.js'
import { isMembers, readBodyJson } from './strict-json.js'

/** A parsed record of an export. Its bytes are valid until the next line is read. */
export interface ReadRecord {
  /** Undefined if `h` is not a header. */
  header: RecordHeader | undefined
  /** The exact text of the header. */
  h: string
  /** 0x00 ‖ H, whose SHA-256 is the hash of the record. */
  leaf: Uint8Array
  /** Signature, 128 hex digits. */
  sig: string | undefined
  /** Seq of the signed record that covers this one. */
  sealedBy: number | undefined
  /** Undefined if the body is erased or withheld. */
  content: ReadContent | undefined
  withheld: boolean
}

export interface ReadContent {
  /** The bytes that the body commitment hashes: prefix ‖ salt ‖ body. */
  committed: Uint8Array
}

/** A parsed line after the first; undefined if it is invalid. */
export type ReadLine = { record: ReadRecord } | { trailer: Trailer } | { blank: true } | undefined

/** The result of the slow checks of a record, which do not depend on other records. */
export interface ExaminedRecord {
  /** 64 hex digits; empty if the header is invalid. */
  hash: string
  /** Whether the body matches the commitment in the header. */
  bodyMatches: boolean
  /** Whether the signature verifies with the key in the header; undefined if it was not checked. */
  signed: boolean | undefined
  /** For a key rotation: the new key, if its possession is proven for the strand. */
  newKey: string | undefined
}

/** How a record is examined. */
export interface Examination {
  /** The strand for which a new key must be proven. */
  strand: string
  signature: boolean
}

const commitmentPrefix = utf8('strand-body/v1\n')
const SALT_BYTES = 16
const BODY_AT = commitmentPrefix.length + SALT_BYTES

/** The exact text of a body. */
export function bodyText({ committed }: ReadContent): string {
  return textOf(committed.subarray(BODY_AT))
}

/** The members of a body; empty if the body is not a JSON object. */
export function bodyMembers(content: ReadContent | undefined): Record<string, unknown> {
  const value = content && readBodyJson(bodyText(content))?.value
  return isMembers(value) ? value : {}
}

/** Parses a line after the first. */
export function readLineText(text: string): ReadLine {
  if (isBlankLine(text)) return { blank: true }
  const parsed = parseLine(text)
  return parsed !== undefined && 'record' in parsed ? { record: readRecord(parsed.record) } : parsed
}

/** Parses the members of a record line. */
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

/** Runs the checks of a record that do not depend on other records, and can therefore run in parallel. */
export function* examineRecord(
  record: ReadRecord,
  { strand, signature }: Examination,
): Check<ExaminedRecord> {
  const { header, leaf, sig, content } = record
  if (header === undefined) return { hash: '', bodyMatches: false, signed: false, newKey: undefined }
  // Yielded directly instead of by `hashOf`, which saves a generator for each record.
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

/** The key and proof of a key rotation; undefined unless the body has both. */
export function namedKey(content: ReadContent | undefined): { publicKey: string; proof: string } | undefined {
  const { public_key: publicKey, proof } = bodyMembers(content)
  return isHex(publicKey, 64) && isHex(proof, 128) ? { publicKey, proof } : undefined
}

/** Whether a record introduces a key of the strand, which verifiers need to continue. */
export function namesKey({ type }: RecordHeader): boolean {
  return type === genesisType || type === keyRotateType
}
