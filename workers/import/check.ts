import { isUtf8 } from 'node:buffer'
import { reaches } from '../../src/auth/namespace.js'
import { assert } from '../../src/base/assert.js'
import { asBuffer } from '../../src/base/bytes.js'
import { limits } from '../../src/base/limits/limits.js'
import { lineEnd } from '../../src/base/line-splitter.js'
import type { CheckedRecords, EffectAt } from '../../src/protocol/import-messages.js'
import type { ImportChecked, ImportCheckTask, ImportPosition } from '../../src/protocol/reader-tasks.js'
import { ChainCheck, placeOf } from '../../src/proof/chain-check.js'
import { endFault, trailerFault } from '../../src/proof/export-check.js'
import { isBlankLine, parseLine } from '../../src/proof/export-lines.js'
import { runSync } from '../../src/proof/job.js'
import { jobs } from '../../src/proof/node/jobs.js'
import { readRecord } from '../../src/proof/record.js'
import { TreeHasher } from '../../src/proof/tree.js'
import { recordHash } from '../../src/strand/hash.js'
import { parseHeader, type RecordHeader } from '../../src/strand/header.js'
import { parseHlc, zeroHlc } from '../../src/strand/hlc.js'
import { canonicalJson, readJson } from '../../src/strand/json.js'
import { isReservedType } from '../../src/strand/record-type.js'
import type { Manifest, RecordLine, Trailer } from '../../src/strand/strand-export.js'
import { encodeBlock, type StoredRecord } from '../store/tables/record-codec.js'
import { type FindEarlier, indexedRecord } from './record-index.js'
import { effectOf, type Target } from './system-record-effects.js'

/*
 * The checks of an import, part by part: everything that a verifier checks (docs/FORMAT.md, Checking an
 * export), and the requirements of the store. Pure functions.
 */

/**
 * Checks lines of an export, starting at the position where the last part ended. Records are accepted up to
 * the last signed one; the lines after it must be sent again with the next part, which has their seal.
 * @param find finds the records of earlier parts of the export
 */
export function checkLines(task: ImportCheckTask, find: FindEarlier = () => undefined): ImportChecked {
  const { lines, fault } = parsed(asBuffer(task.lines))
  const last = lines.findLastIndex(({ record }) => record?.sig !== undefined || record === undefined)
  const taken = lines.slice(0, last + 1)
  const part = new PartCheck(task, find)
  for (const [line, { record, trailer, blank }] of taken.entries()) {
    if (part.ended && blank === true) continue
    const reason = part.ended ? 'A line follows the trailer' : part.take(record, trailer)
    if (reason !== undefined) return { fault: { line, reason, seq: part.seq, forbidden: part.forbidden } }
  }
  if (fault !== undefined)
    return { fault: { line: lines.length, reason: fault, seq: part.seq, forbidden: false } }
  return {
    position: part.position(),
    linesTaken: taken.length,
    bytesTaken: taken.at(-1)?.end ?? 0,
    ended: part.ended,
    parts: part.parts(),
  }
}

interface ParsedLine {
  record?: RecordLine
  trailer?: Trailer
  blank?: true
  /** Offset of the next line. */
  end: number
}

/** The lines up to the first invalid one, and what is wrong with it. */
function parsed(bytes: Buffer): { lines: ParsedLine[]; fault?: string } {
  const lines: ParsedLine[] = []
  for (let from = 0; from < bytes.length;) {
    const to = lineEnd(bytes, from)
    const line = bytes.subarray(from, to)
    if (!isUtf8(line)) return { lines, fault: 'The line is not UTF-8' }
    const text = line.toString('utf8')
    const read = isBlankLine(text) ? ({ blank: true } as const) : parseLine(text)
    if (read === undefined) return { lines, fault: 'The line is neither a record nor the trailer' }
    from = to + 1
    lines.push({ ...read, end: Math.min(from, bytes.length) })
  }
  return { lines }
}

class PartCheck {
  /** Whether the trailer was read, which ends the export. */
  ended = false
  /** Whether another key could import the faulty record. */
  forbidden = false
  readonly #manifest: Manifest
  readonly #agents: readonly string[]
  readonly #find: FindEarlier
  readonly #chain: ChainCheck
  /** The tree over all records so far, including those of earlier parts. */
  readonly #tree = new TreeHasher()
  readonly #before: Pick<ImportPosition, 'records' | 'rotations'>
  /** The seq of a faulty record that the chain has already accepted. */
  #refusedSeq: number | undefined
  readonly #records: StoredRecord[] = []
  /** Where parts begin in these records, and the keys in force there. */
  readonly #starts: { at: number; key: string }[] = []
  /** The records since the last signed one. */
  #sealed = { records: 0, bodyBytes: 0 }
  #erasures = 0
  readonly #effects: EffectAt[] = []
  readonly #commitments: [number, string][] = []

  constructor({ manifest, position, agents }: ImportCheckTask, find: FindEarlier) {
    this.#manifest = manifest
    this.#agents = agents
    this.#find = find
    this.#chain = new ChainCheck(manifest, position?.place ?? placeOf(manifest), {})
    this.#before = position ?? { records: 0, rotations: 0 }
    for (const subtree of position?.subtrees ?? []) runSync(this.#tree.join(subtree), jobs)
  }

  /** The seq of the faulty record or, if there is none, of the next one. */
  get seq(): number {
    return this.#refusedSeq ?? this.#chain.place.seq
  }

  /** The position at which the next part begins. */
  position(): ImportPosition {
    const { place } = this.#chain
    assert(place.sealAwaited === undefined, 'a part ends with a signed record')
    const counts = { records: this.#taken, rotations: this.#rotations }
    return { place: { ...place }, ...counts, subtrees: this.#tree.subtrees() }
  }

  get #taken(): number {
    return this.#before.records + this.#chain.tally.records
  }

  get #rotations(): number {
    return this.#before.rotations + this.#chain.tally.rotations
  }

  get count(): number {
    return this.#records.length
  }

  /** Checks the next line. @returns what is wrong with it, or undefined */
  take(record: RecordLine | undefined, trailer: Trailer | undefined): string | undefined {
    if (record === undefined) {
      if (trailer === undefined) return 'The line is neither a record nor the trailer'
      this.ended = true
      const { place } = this.#chain
      const end = { place, records: this.#taken, trusted: true, tree: this.#tree }
      return endFault(this.#manifest, end) ?? runSync(trailerFault(this.#manifest, trailer, end), jobs)
    }
    const { key } = this.#chain.place
    const read = readRecord(record)
    const fault = this.#chain.take(read, runSync(this.#chain.examine(read), jobs))
    if (fault !== undefined) return fault
    this.#addToTree()
    if (this.count === 0 || this.#erasures === limits.importErasuresMax) {
      this.#starts.push({ at: this.count, key })
      this.#erasures = 0
    }
    const header = parseHeader(record.h)
    assert(header !== undefined, 'a record that was checked has a header')
    const reason = this.#add(header, record) ?? this.#sealFault(record)
    if (reason !== undefined) this.#refusedSeq = header.seq
    return reason
  }

  #addToTree(): void {
    const { head } = this.#chain.place
    if (head !== undefined && this.#manifest.fromSeq === 0)
      runSync(this.#tree.join({ level: 0, rootHex: head }), jobs)
  }

  /** Bounds the records that one signature seals, which the shard commits in one step. */
  #sealFault({ sig, body = '' }: RecordLine): string | undefined {
    this.#sealed.records += 1
    this.#sealed.bodyBytes += Buffer.byteLength(body)
    const { records, bodyBytes } = this.#sealed
    if (records > limits.importRecordsMax) return 'Too many records have one seal'
    if (records > 1 && bodyBytes > limits.importBodyBytesMax) return 'Too many bytes have one seal'
    if (sig !== undefined) this.#sealed = { records: 0, bodyBytes: 0 }
    return undefined
  }

  #add(header: RecordHeader, record: RecordLine): string | undefined {
    const { seq, type } = header
    if (record.withheld === true) return 'The body of the record is withheld'
    if (isReservedType(type) && record.sig === undefined) return 'A system record has no signature'
    const stored = storedRecord(header, record)
    if (record.body === undefined) {
      if (isReservedType(type)) return 'A system record is erased'
      this.#commitments.push([seq, header.body])
    } else {
      const body = readBody(record.body)
      if ('fault' in body) return body.fault
      const fault = this.#addEffect(header, body.value)
      if (fault !== undefined) return fault
    }
    this.#records.push(stored)
    return undefined
  }

  /** Adds what a record does, if anything. @returns what is wrong with it, or undefined */
  #addEffect({ seq, type, prev, hlc }: RecordHeader, body: unknown): string | undefined {
    const { ms: atMs } = parseHlc(hlc) ?? zeroHlc
    const read = effectOf({ agent: this.#manifest.agent, type, seq, prev, atMs, body })
    if ('fault' in read) return read.fault
    const { effect, targets = [] } = read
    if (!targets.every((target) => this.#has(target)))
      return 'The record names a record that is not on the strand'
    if (this.#rotations > limits.keyRotationsMax) {
      return `The key was rotated more than ${limits.keyRotationsMax} times`
    }
    if (effect === undefined) return undefined
    if (effect.kind === 'edge' && effect.live && this.#agents.length > 0) {
      this.forbidden = !reaches(this.#agents, effect.dst)
      if (this.forbidden)
        return `The record adds an edge to agent "${effect.dst}", which this key does not reach`
    }
    if (this.#effects.length >= limits.commitRecordsMax) return 'Too many system records have one seal'
    if (effect.kind === 'record' && effect.action === 'erase') this.#erasures += 1
    this.#effects.push({ seq, ...effect })
    return undefined
  }

  /** Whether the export has the target of a record. The shard finds targets that are before the export. */
  #has({ seq, hash, kind }: Target): boolean {
    if (seq < this.#manifest.fromSeq) return true
    const own = this.#records[seq - (this.#records[0]?.seq ?? seq + 1)]
    const found = own === undefined ? this.#find(seq) : indexedRecord(own)
    return found?.kind === kind && (hash === undefined || found.hash === hash)
  }

  /** The records in parts with a bounded number of erasures, each of which rewrites a block. */
  parts(): CheckedRecords[] {
    return this.#starts.map(({ at, key }, index) => {
      const records = this.#records.slice(at, this.#starts[index + 1]?.at)
      const first = records[0]
      const last = records.at(-1)
      assert(first !== undefined && last !== undefined, 'a part has records')
      const isIn = (seq: number) => seq >= first.seq && seq <= last.seq
      return {
        chunk: encodeBlock(records),
        firstSeq: first.seq,
        lastSeq: last.seq,
        lastHash: last.hash,
        key,
        effects: this.#effects.filter(({ seq }) => isIn(seq)),
        commitments: this.#commitments.filter(([seq]) => isIn(seq)),
      }
    })
  }
}

/** Parses a body, which must be valid for a record of a server. */
function readBody(text: string): { value: unknown } | { fault: string } {
  const bytes = Buffer.from(text)
  if (bytes.length > limits.recordBytesMax) {
    return { fault: `The body has more than ${limits.recordBytesMax} bytes` }
  }
  const read = readJson(bytes, limits.nestingDepthMax, { canonical: true })
  if ('code' in read) return { fault: `The body cannot be read: ${read.detail}` }
  const { value } = read
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { fault: 'The body is not a JSON object' }
  }
  return canonicalJson(value) === text ? { value } : { fault: 'The body is not in canonical form' }
}

/** The record in its stored form. The shard sets the number of its agent and the index of its key. */
function storedRecord(header: RecordHeader, { h, sig, sealedBy, salt, body }: RecordLine): StoredRecord {
  const { seq, type, prev } = header
  const record: StoredRecord = {
    agentNo: 0,
    seq,
    hlc: parseHlc(header.hlc) ?? zeroHlc,
    type,
    hash: recordHash(h),
    prev,
    keyIndex: 0,
    salt: Buffer.from(salt ?? '', 'hex'),
    body: Buffer.from(body ?? ''),
  }
  if (body === undefined) record.erased = true
  if (sig !== undefined) record.signature = Buffer.from(sig, 'hex')
  else if (sealedBy !== undefined) record.sealedBy = sealedBy
  return record
}
