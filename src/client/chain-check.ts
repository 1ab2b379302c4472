import {
  type Manifest,
  type RecordHeader,
  type RecordLine,
  membersOf,
  parseHeader,
  parseJson,
} from './export-lines.js'
import { TreeHasher } from './tree.js'
import { type Bytes, type SignatureCheck, fromHex, sha256, toHex, utf8 } from './webcrypto.js'

/** What can be said of one record without those before it. */
export interface ExaminedRecord {
  line: RecordLine
  /** Undefined when it is not of the form. */
  header: RecordHeader | undefined
  hash: Bytes
  /** Whether the body is the one that the header commits to. */
  bodyMatches: boolean
  /** Whether the record's own signature is one by the key that its header names. */
  signatureMatches: boolean
}

const ZEROS = '0'.repeat(64)
const LEAF = Uint8Array.of(0)
const GENESIS = 'sys/genesis'
const KEY_ROTATE = 'sys/key_rotate'

/** Does a record's slow work, hashes and signature; many can be under way at once. */
export async function examineRecord(line: RecordLine, signatures: SignatureCheck): Promise<ExaminedRecord> {
  const header = parseHeader(line.h)
  const [hash, commitment, signatureMatches] = await Promise.all([
    sha256(LEAF, utf8(line.h)),
    bodyCommitment(line),
    line.sig !== undefined && header !== undefined
      ? signatures.verifies(header.key, line.h, fromHex(line.sig))
      : false,
  ])
  return { line, header, hash, bodyMatches: commitment === header?.body, signatureMatches }
}

async function bodyCommitment(line: RecordLine): Promise<string | undefined> {
  if (line.salt === undefined || line.body === undefined) return undefined
  return toHex(await sha256(utf8('strand-body/v1\n'), fromHex(line.salt), utf8(line.body)))
}

/** Checks examined records of one strand in order, each against what came before (contract.md 4). */
export class ChainCheck {
  readonly #manifest: Manifest
  readonly #trustedKey: string | undefined
  readonly #signatures: SignatureCheck
  readonly #tree = new TreeHasher()
  #trusted: boolean
  #previousHlc = ''
  /** Seq of the signed record that sealed ones before it wait for. */
  #sealAwaited: number | undefined

  /** Seq of the record that is expected next, or that was found wrong. */
  nextSeq: number
  /** Key in force. */
  key: string
  /** Hash of the last record. */
  head = ''
  records = 0
  signaturesChecked = 0
  sealed = 0
  erased = 0
  withheld = 0
  keys = 1

  constructor(manifest: Manifest, trustedKey: string | undefined, signatures: SignatureCheck) {
    this.#manifest = manifest
    this.#trustedKey = trustedKey
    this.#signatures = signatures
    this.#trusted = trustedKey === undefined
    this.nextSeq = manifest.fromSeq
    this.key = manifest.publicKey
  }

  /** Takes the next record. Resolves to what is wrong with it, or undefined. */
  async take(record: ExaminedRecord): Promise<string | undefined> {
    const { header, line } = record
    if (header === undefined) return 'The header is not of the form strand-record/v1'
    const hash = toHex(record.hash)
    const fault =
      this.#linkFault(header, hash) ??
      bodyFault(header, record) ??
      genesisFault(header, line, this.#manifest) ??
      this.#signatureFault(record)
    if (fault !== undefined) return fault
    if (header.type === KEY_ROTATE) {
      const rotationFault = await this.#rotate(line)
      if (rotationFault !== undefined) return rotationFault
    }
    if (line.withheld === true) this.withheld += 1
    else if (line.body === undefined) this.erased += 1
    if (this.#manifest.fromSeq === 0) await this.#tree.append(record.hash)
    this.#previousHlc = header.hlc
    this.head = hash
    this.nextSeq += 1
    this.records += 1
    return undefined
  }

  /** What is wrong with where the records end, or undefined. */
  endFault(): string | undefined {
    const { toSeq, recordCount } = this.#manifest
    if (this.records === 0) return 'The export has no records'
    if (this.nextSeq !== toSeq + 1) {
      return `The manifest promises records up to seq ${toSeq}, the last one is ${this.nextSeq - 1}`
    }
    if (recordCount < toSeq) return 'The manifest counts too few records'
    if (this.#sealAwaited !== undefined) {
      return `The last record is not signed: record ${this.#sealAwaited}, which seals it, is not in the export`
    }
    return this.#trusted ? undefined : 'No record is signed by the key given'
  }

  /** Root over all records in hex; undefined when the export does not begin at genesis. */
  async root(): Promise<string | undefined> {
    return this.#manifest.fromSeq === 0 ? toHex(await this.#tree.root()) : undefined
  }

  #linkFault(header: RecordHeader, hash: string): string | undefined {
    if (header.seq !== this.nextSeq) return `Expected seq ${this.nextSeq}, found ${header.seq}`
    if (header.seq === 0) {
      if (header.strand !== ZEROS || header.prev !== ZEROS)
        return 'Genesis names a strand or a record before it'
      if (hash !== this.#manifest.strand) return 'The strand is not the hash of its genesis record'
    } else if (header.strand !== this.#manifest.strand) return 'The record belongs to another strand'
    if (this.records > 0 && header.prev !== this.head)
      return 'The record does not name the hash of the one before'
    if (header.key !== this.key) return 'The record names a key that is not in force'
    return header.hlc > this.#previousHlc ? undefined : 'The clock does not go forward'
  }

  #signatureFault(record: ExaminedRecord): string | undefined {
    if (record.line.sig !== undefined) {
      if (!record.signatureMatches) return 'The signature does not verify'
      this.signaturesChecked += 1
      this.#trusted ||= this.key === this.#trustedKey
      if (this.#sealAwaited === this.nextSeq) this.#sealAwaited = undefined
      return undefined
    }
    const sealedBy = record.line.sealedBy ?? 0
    if (this.#sealAwaited === this.nextSeq) return 'The record seals others and is not signed'
    if (sealedBy <= this.nextSeq) return 'The record is neither signed nor sealed by a later one'
    if (this.#sealAwaited !== undefined && this.#sealAwaited !== sealedBy) {
      return `The record is sealed by ${sealedBy} within the group of ${this.#sealAwaited}`
    }
    this.#sealAwaited = sealedBy
    this.sealed += 1
    return undefined
  }

  /** From the next record on the key is the one that this record, signed by the old key, names and proves. */
  async #rotate(line: RecordLine): Promise<string | undefined> {
    if (line.sig === undefined) return 'A key rotation carries no signature of its own'
    const { public_key: publicKey, proof } = membersOf(line.body)
    if (typeof publicKey !== 'string' || typeof proof !== 'string') return 'A key rotation names no new key'
    const proofText = `strand-key-rotate/v1\n${this.#manifest.strand}\n${publicKey}\n`
    const isProofForm = /^[0-9a-f]{128}$/.test(proof)
    if (!isProofForm || !(await this.#signatures.verifies(publicKey, proofText, fromHex(proof)))) {
      return 'A key rotation does not prove its new key'
    }
    this.key = publicKey
    this.keys += 1
    return undefined
  }
}

function bodyFault(header: RecordHeader, record: ExaminedRecord): string | undefined {
  if (record.line.body === undefined) {
    const kept = header.type === GENESIS || header.type === KEY_ROTATE
    if (!kept) return undefined
    return `A record that names a key is ${record.line.withheld === true ? 'withheld' : 'erased'}`
  }
  if (!record.bodyMatches) return 'The body is not the one committed to'
  return parseJson(record.line.body) ? undefined : 'The body is not JSON'
}

function genesisFault(header: RecordHeader, line: RecordLine, manifest: Manifest): string | undefined {
  if ((header.seq === 0) !== (header.type === GENESIS)) return 'Genesis is record 0 and no other'
  if (header.seq > 0) return undefined
  const { agent, public_key: publicKey } = membersOf(line.body)
  if (agent !== manifest.agent) return 'The genesis record names another agent'
  return publicKey === header.key ? undefined : 'The genesis record names another key'
}
