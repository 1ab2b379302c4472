import { type RecordHeader, zeroHash } from '../strand/header.js'
import { endsImport, eraseType, genesisType, keyRotateType } from '../strand/record-type.js'
import type { Manifest } from '../strand/strand-export.js'
import { isCount, isHex } from './hex.js'
import type { Check } from './job.js'
import {
  type ExaminedRecord,
  type ReadRecord,
  bodyMembers,
  bodyText,
  examineRecord,
  namedKey,
  namesKey,
} from './record.js'
import { readBodyJson, readCountingBody } from './strict-json.js'

/** The state of a chain between two records, against which the next record is checked. */
export interface ChainPlace {
  /** Seq of the next record. */
  seq: number
  /**
   * Hash of the previous record; undefined before the first record of an export, whose `prev` cannot be
   * checked.
   */
  head: string | undefined
  /** Timestamp of the previous record; empty if there is none. */
  hlc: string
  key: string
  /** Seq of the signed record that seals the pending records. */
  sealAwaited: number | undefined
}

export interface ChainTally {
  records: number
  signaturesChecked: number
  signaturesPassed: number
  /** Records covered by the signature of a later record. */
  sealed: number
  erased: number
  withheld: number
  rotations: number
  /** How many of the first records of the strand were imported, as far as the records say. */
  imported: number
}

export interface ChainOptions {
  /** The key that must have signed a record; if absent, the export is only checked against itself. */
  trustedKey?: string | undefined
  /**
   * Checks only the signatures of genesis, of each key rotation and of the last record; the hashes cover all
   * other records. Bodies are compared with their commitments, but not parsed.
   */
  fast?: boolean
}

/** An erased record, or the `sys/erase` record that names it. */
export type Erasure =
  | { kind: 'erased'; seq: number; hash: string }
  | { kind: 'named'; targetSeq: number; target: string }

/** The state before the first record of an export. */
export function placeOf(manifest: Manifest): ChainPlace {
  return { seq: manifest.fromSeq, head: undefined, hlc: '', key: manifest.publicKey, sealAwaited: undefined }
}

/**
 * An assumed state in which a record would be valid, to begin checking in the middle of an export. The
 * assumption must be confirmed later: from the actual state, `ChainCheck` must accept the record too and
 * arrive at the same state.
 */
export function assumedPlace({ header, sealedBy }: ReadRecord): ChainPlace | undefined {
  return header && { seq: header.seq, head: header.prev, hlc: '', key: header.key, sealAwaited: sealedBy }
}

/** Whether two states are equal for the check of the next record. */
export function isSamePlace(one: ChainPlace, other: ChainPlace): boolean {
  return (
    one.seq === other.seq &&
    one.head === other.head &&
    one.hlc === other.hlc &&
    one.key === other.key &&
    one.sealAwaited === other.sealAwaited
  )
}

export function emptyTally(): ChainTally {
  return {
    records: 0,
    signaturesChecked: 0,
    signaturesPassed: 0,
    sealed: 0,
    erased: 0,
    withheld: 0,
    rotations: 0,
    imported: 0,
  }
}

/** Checks the records of one strand in their order (docs/FORMAT.md, Checking an export). */
export class ChainCheck {
  readonly #manifest: Manifest
  readonly #trustedKey: string | undefined
  readonly #fast: boolean
  readonly #place: ChainPlace
  readonly tally = emptyTally()
  /** Whether the trusted key has signed one of the records. */
  trusted = false
  /** The erasure that the last record shows or names. */
  erasure: Erasure | undefined

  /** @param place the state before the first record to check */
  constructor(manifest: Manifest, place: ChainPlace, { trustedKey, fast = false }: ChainOptions) {
    this.#manifest = manifest
    this.#trustedKey = trustedKey
    this.#fast = fast
    this.#place = { ...place }
  }

  /** The state after the last valid record. */
  get place(): Readonly<ChainPlace> {
    return this.#place
  }

  /** Computes the hashes and signatures that `take` needs; independent of the current state. */
  examine(record: ReadRecord): Check<ExaminedRecord> {
    const signature = !this.#fast || record.header === undefined || this.#decides(record.header)
    return examineRecord(record, { strand: this.#manifest.strand, signature })
  }

  /** Checks the next record. @returns the fault, or undefined */
  take(record: ReadRecord, examined: ExaminedRecord): string | undefined {
    const { header } = record
    if (header === undefined) return 'The header is not of the form strand-record/v1'
    const { hash } = examined
    const fault =
      this.#linkFault(header, hash) ??
      bodyFault(record, examined, this.#fast) ??
      genesisFault(header, record, this.#manifest) ??
      this.#signatureFault(record, examined)
    if (fault !== undefined) return fault
    if (header.type === keyRotateType) {
      const rotated = this.#rotate(record, examined)
      if (rotated !== undefined) return rotated
    }
    if (record.withheld) this.tally.withheld += 1
    else if (record.content === undefined) this.tally.erased += 1
    if (endsImport(header.type, this.#manifest.agent)) this.tally.imported = header.seq
    this.erasure = erasureOf(header, record, hash)
    this.tally.records += 1
    this.#place.hlc = header.hlc
    this.#place.head = hash
    this.#place.seq += 1
    return undefined
  }

  #linkFault(header: RecordHeader, hash: string): string | undefined {
    const { seq, head, key, hlc } = this.#place
    if (header.seq !== seq) return `Expected seq ${seq}, found ${header.seq}`
    if (header.seq === 0) {
      if (header.strand !== zeroHash || header.prev !== zeroHash)
        return 'Genesis names a strand or a record before it'
      if (hash !== this.#manifest.strand) return 'The strand is not the hash of its genesis record'
    } else if (header.strand !== this.#manifest.strand) return 'The record belongs to another strand'
    if (head !== undefined && header.prev !== head)
      return 'The record does not name the hash of the one before'
    if (header.key !== key) return 'The record names a key that is not in force'
    return header.hlc > hlc ? undefined : 'The clock does not go forward'
  }

  #signatureFault(record: ReadRecord, { signed }: ExaminedRecord): string | undefined {
    const { seq, key, sealAwaited } = this.#place
    if (record.sig !== undefined) {
      if (signed === undefined) this.tally.signaturesPassed += 1
      else {
        if (!signed) return 'The signature does not verify'
        this.tally.signaturesChecked += 1
        this.trusted ||= key === this.#trustedKey
      }
      if (sealAwaited === seq) this.#place.sealAwaited = undefined
      return undefined
    }
    const sealedBy = record.sealedBy ?? 0
    if (sealAwaited === seq) return 'The record seals others and is not signed'
    if (sealedBy <= seq) return 'The record is neither signed nor sealed by a later one'
    if (sealAwaited !== undefined && sealAwaited !== sealedBy) {
      return `The record is sealed by ${sealedBy} within the group of ${sealAwaited}`
    }
    this.#place.sealAwaited = sealedBy
    this.tally.sealed += 1
    return undefined
  }

  /** Whether other records depend on the signature of this one. */
  #decides({ seq, type }: RecordHeader): boolean {
    return seq === 0 || seq === this.#manifest.toSeq || type === keyRotateType
  }

  /** Applies a key rotation, which the old key must have signed, from the next record on. */
  #rotate(record: ReadRecord, { newKey }: ExaminedRecord): string | undefined {
    if (record.sig === undefined) return 'A key rotation is not signed'
    if (newKey === undefined) {
      const named = namedKey(record.content) !== undefined
      return named ? 'A key rotation does not prove its new key' : 'A key rotation names no new key'
    }
    this.#place.key = newKey
    this.tally.rotations += 1
    return undefined
  }
}

function bodyFault(
  { header, content, withheld }: ReadRecord,
  { bodyMatches }: ExaminedRecord,
  fast: boolean,
): string | undefined {
  if (content === undefined) {
    const isRequired = header !== undefined && namesKey(header)
    return isRequired ? `A record that names a key is ${withheld ? 'withheld' : 'erased'}` : undefined
  }
  if (!bodyMatches) return 'The body is not the one committed to'
  return fast || readBodyJson(bodyText(content)) !== undefined ? undefined : 'The body is not JSON'
}

function genesisFault(header: RecordHeader, record: ReadRecord, manifest: Manifest): string | undefined {
  if ((header.seq === 0) !== (header.type === genesisType)) return 'Genesis is record 0 and no other'
  if (header.seq > 0) return undefined
  const { agent, public_key: publicKey } = bodyMembers(record.content)
  if (agent !== manifest.agent) return 'The genesis record names another agent'
  return publicKey === header.key ? undefined : 'The genesis record names another key'
}

function erasureOf(
  header: RecordHeader,
  { content, withheld }: ReadRecord,
  hash: string,
): Erasure | undefined {
  const { seq, type } = header
  if (content === undefined) return withheld ? undefined : { kind: 'erased', seq, hash }
  if (type !== eraseType) return undefined
  const { target, target_seq: targetSeq } = readCountingBody(bodyText(content))
  if (!isHex(target, 64) || !isCount(targetSeq) || targetSeq >= seq) return undefined
  return { kind: 'named', targetSeq, target }
}
