import { genesisType, keyRotateType, rotationProofText } from './genesis.js'
import { bodyCommitment, recordHash } from './hash.js'
import { type RecordHeader, parseHeader, zeroHash } from './header.js'
import { verifyText } from './keys.js'
import { TreeHasher } from './merkle.js'
import type { Manifest, RecordLine } from './strand-export.js'

/** How far a check has come: behind a signed record, where nothing waits to be sealed. */
export interface ChainPosition {
  /** Seq of the record that is expected next. */
  nextSeq: number
  /** Key in force. */
  key: string
  /** Hash of the last record. */
  head: string
  hlc: string
  records: number
  /** The tree over the records: its peaks. */
  peaks: string[]
}

/** Checks the records of one strand as they come, each against what came before (contract.md 4). */
export class ChainCheck {
  readonly #manifest: Manifest
  readonly #trustedKey: string | undefined
  #tree = new TreeHasher()
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

  constructor(manifest: Manifest, trustedKey: string | undefined) {
    this.#manifest = manifest
    this.#trustedKey = trustedKey
    this.#trusted = trustedKey === undefined
    this.nextSeq = manifest.fromSeq
    this.key = manifest.publicKey
  }

  /** Goes on, with a new check, behind a position that an earlier one came to. Counts but that of records begin anew. */
  static from(manifest: Manifest, position: ChainPosition): ChainCheck {
    const chain = new ChainCheck(manifest, undefined)
    chain.nextSeq = position.nextSeq
    chain.key = position.key
    chain.head = position.head
    chain.#previousHlc = position.hlc
    chain.records = position.records
    chain.#tree = TreeHasher.of(position.records, position.peaks)
    return chain
  }

  /** Where another check can go on; undefined while sealed records wait for their seal. */
  get position(): ChainPosition | undefined {
    if (this.#sealAwaited !== undefined) return undefined
    const { nextSeq, key, head, records } = this
    return { nextSeq, key, head, hlc: this.#previousHlc, records, peaks: this.#tree.peaks }
  }

  /** Takes the next record. @returns what is wrong with it, or undefined */
  take(record: RecordLine): string | undefined {
    const header = parseHeader(record.h)
    if (header === undefined) return 'The header is not of the form strand-record/v1'
    const hash = recordHash(record.h)
    const fault =
      this.#linkFault(header, hash) ??
      bodyFault(header, record) ??
      genesisFault(header, record, this.#manifest) ??
      this.#signatureFault(record)
    if (fault !== undefined) return fault
    if (header.type === keyRotateType) {
      const rotated = this.#rotate(record)
      if (rotated !== undefined) return rotated
    }
    if (record.withheld === true) this.withheld += 1
    else if (record.body === undefined) this.erased += 1
    this.#tree.append(Buffer.from(hash, 'hex'))
    this.#previousHlc = header.hlc
    this.head = hash
    this.nextSeq += 1
    this.records += 1
    return undefined
  }

  /** What is wrong with where the records end, or undefined. */
  endFault(): string | undefined {
    if (this.records === 0) return 'The export has no records'
    if (this.nextSeq !== this.#manifest.toSeq + 1) {
      return `The manifest promises records up to seq ${this.#manifest.toSeq}, the last one is ${this.nextSeq - 1}`
    }
    if (this.#manifest.recordCount < this.#manifest.toSeq) return 'The manifest counts too few records'
    if (this.#sealAwaited !== undefined) {
      return `The last record is not signed: record ${this.#sealAwaited}, which seals it, is not in the export`
    }
    return this.#trusted ? undefined : 'No record is signed by the key given'
  }

  /** Root over all records in hex; undefined when the export does not begin at genesis. */
  root(): string | undefined {
    return this.#manifest.fromSeq === 0 ? Buffer.from(this.#tree.root()).toString('hex') : undefined
  }

  #linkFault(header: RecordHeader, hash: string): string | undefined {
    if (header.seq !== this.nextSeq) return `Expected seq ${this.nextSeq}, found ${header.seq}`
    if (header.seq === 0) {
      if (header.strand !== zeroHash || header.prev !== zeroHash)
        return 'Genesis names a strand or a record before it'
      if (hash !== this.#manifest.strand) return 'The strand is not the hash of its genesis record'
    } else if (header.strand !== this.#manifest.strand) return 'The record belongs to another strand'
    if (this.records > 0 && header.prev !== this.head)
      return 'The record does not name the hash of the one before'
    if (header.key !== this.key) return 'The record names a key that is not in force'
    return header.hlc > this.#previousHlc ? undefined : 'The clock does not go forward'
  }

  #signatureFault(record: RecordLine): string | undefined {
    if (record.sig !== undefined) {
      if (!verifyText(this.key, record.h, Buffer.from(record.sig, 'hex')))
        return 'The signature does not verify'
      this.signaturesChecked += 1
      this.#trusted ||= this.key === this.#trustedKey
      if (this.#sealAwaited === this.nextSeq) this.#sealAwaited = undefined
      return undefined
    }
    const sealedBy = record.sealedBy ?? 0
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
  #rotate(record: RecordLine): string | undefined {
    if (record.sig === undefined) return 'A key rotation carries no signature of its own'
    const { public_key: publicKey, proof } = bodyMembers(record.body)
    if (typeof publicKey !== 'string' || typeof proof !== 'string') return 'A key rotation names no new key'
    const proven = /^[0-9a-f]{128}$/.test(proof) ? Buffer.from(proof, 'hex') : Buffer.alloc(0)
    if (!verifyText(publicKey, rotationProofText(this.#manifest.strand, publicKey), proven)) {
      return 'A key rotation does not prove its new key'
    }
    this.key = publicKey
    this.keys += 1
    return undefined
  }
}

function bodyFault(header: RecordHeader, record: RecordLine): string | undefined {
  if (record.body === undefined || record.salt === undefined) {
    const kept = header.type === genesisType || header.type === keyRotateType
    if (!kept) return undefined
    return `A record that names a key is ${record.withheld === true ? 'withheld' : 'erased'}`
  }
  const commitment = bodyCommitment(Buffer.from(record.salt, 'hex'), Buffer.from(record.body))
  if (commitment !== header.body) return 'The body is not the one committed to'
  return isJson(record.body) ? undefined : 'The body is not JSON'
}

function genesisFault(header: RecordHeader, record: RecordLine, manifest: Manifest): string | undefined {
  if ((header.seq === 0) !== (header.type === genesisType)) return 'Genesis is record 0 and no other'
  if (header.seq > 0) return undefined
  const { agent, public_key: publicKey } = bodyMembers(record.body)
  if (agent !== manifest.agent) return 'The genesis record names another agent'
  return publicKey === header.key ? undefined : 'The genesis record names another key'
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function bodyMembers(body: string | undefined): Record<string, unknown> {
  if (body === undefined || !isJson(body)) return {}
  const value: unknown = JSON.parse(body)
  return isMembers(value) ? value : {}
}

function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
