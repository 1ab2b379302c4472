import { refusalOf, refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { readsBy, type Readers } from '../../../protocol/reader-tasks.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { AuditEntry, ImportTold } from '../../../protocol/audit-messages.js'
import type { CheckedRecords, ImportedOutcome } from '../../../protocol/import-messages.js'
import type { Command, Outcome } from '../../../protocol/messages.js'
import type { AgentHead } from '../../../protocol/server-log-messages.js'
import { unexpected } from '../../routes/answers.js'
import type { ImportRequest } from '../../routes/route.js'
import type { ExportPosition } from '../../../proof/export-check.js'
import { keyPairFromSeed } from '../../../strand/keys.js'
import { isBlank } from '../../../strand/json-scanner.js'
import type { Manifest } from '../../../strand/strand-export.js'
import type { StrandImported } from '../../../wire/strand.js'
import type { BodyMemory } from '../../../base/gathered-bytes.js'
import type { ImportStage } from './stage.js'

/** The parts that one import works with. */
export interface SessionParts {
  shards: Shards
  readers: Readers
  /**
   * Writes a head to the server log, which would not find it by itself; false while that is not possible. Absent
   * without a log.
   */
  tellHead?(head: AgentHead): Promise<boolean>
  /** Appends a record to the audit strand. @returns the seq of the record; undefined while that is not possible */
  tellAudit(entry: AuditEntry): Promise<number | undefined>
}

/** What one import is about. */
export interface ImportAbout {
  request: ImportRequest
  stage: ImportStage
  /** Counts what of it is in memory. */
  memory: BodyMemory
}

/** Lines before the first record of an export. */
const LINES_BEFORE = 1

/**
 * The import of the lines of one export: each part is checked by a reader of the pool, which appends it to the stage
 * file. At the end of the export the shard of the agent commits one part after the other. Lines that wait for their
 * seal are kept for the next part.
 */
export class ImportSession {
  readonly #shards: Shards
  readonly #readers: Readers
  readonly #tellHead: SessionParts['tellHead']
  readonly #tellAudit: SessionParts['tellAudit']
  readonly #manifest: Manifest
  readonly #request: ImportRequest
  readonly #stage: ImportStage
  #position: ExportPosition | undefined
  /** Lines that could not be taken yet, and how many bytes there must be before they are checked again. */
  readonly #waiting: SharedBytes
  readonly #memory: BodyMemory
  #waitFor = 0
  #lines = LINES_BEFORE
  #ended = false
  /** Whether parts wait in the stage file. */
  #staged = false
  #stands: ImportedOutcome | undefined
  #taken = 0
  #imported = 0
  #firstSeq: number | null = null
  #lastSeq: number | null = null
  /** Seq of the audit record of the import; undefined while it has changed nothing. */
  #begunSeq: number | undefined

  constructor(
    { shards, readers, tellHead, tellAudit }: SessionParts,
    { manifest, request, stage, memory }: ImportAbout & { manifest: Manifest },
  ) {
    this.#memory = memory
    this.#waiting = new SharedBytes(memory)
    this.#shards = shards
    this.#readers = readers
    this.#tellHead = tellHead
    this.#tellAudit = tellAudit
    this.#manifest = manifest
    this.#request = request
    this.#stage = stage
  }

  /** Takes the next whole lines. */
  async take(lines: Buffer): Promise<Refusal | undefined> {
    if (this.#ended) return isBlank(lines) ? undefined : this.#rejected(0, 'A line follows the trailer')
    this.#waiting.add(lines)
    if (this.#waiting.length < this.#waitFor) return undefined
    if (await this.#readers.isFull()) {
      return refuse('overloaded', 'The queue of exports and imports is full, try again', {
        retryAfterSecs: 1,
      })
    }
    return this.#check()
  }

  /**
   * The body has ended, and so must the export. Its records are committed; then the agent takes writes, if the server
   * can sign with its key. `stop` says why nothing more is to be committed.
   */
  async end(stop: () => Refusal | undefined): Promise<Refusal | undefined> {
    const refusal = this.#waiting.length > 0 && !this.#ended ? await this.#check() : undefined
    if (refusal !== undefined) return refusal
    if (!this.#ended) return this.#rejected(0, 'The export is cut off: it has no trailer')
    const refused = (await this.#commitAll(stop)) ?? stop()
    if (refused !== undefined) return refused
    const closed = this.#stands?.open === true ? undefined : await this.#open()
    return closed ?? this.#tell()
  }

  async #commitAll(stop: () => Refusal | undefined): Promise<Refusal | undefined> {
    if (!this.#staged) return undefined
    for await (const part of this.#stage.parts(this.#memory)) {
      const refusal = stop() ?? (await this.#commit(part))
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  /** Checks whether the first part could be imported, before all the others are sent. */
  async #tryFirst(): Promise<Refusal | undefined> {
    for await (const part of this.#stage.parts(this.#memory)) {
      const outcome = await this.#shards.ask(this.#manifest.agent, { ...this.#commandOf(part), told: false })
      if (outcome.kind === 'imported' || outcome.kind === 'importUntold') return undefined
      return this.#refusedBy(outcome)
    }
    return undefined
  }

  /** Imported records have clocks of the past, so the server log would not find the head by itself. */
  async #tell(): Promise<Refusal | undefined> {
    if (this.#tellHead === undefined || this.#stands === undefined) return undefined
    const { headSeq, headHash } = this.#stands
    const { agent, strand } = this.#manifest
    const told = await this.#tellHead({ agent, strand, size: headSeq + 1, hash: headHash })
    if (told) return undefined
    const detail = 'The log of strand heads takes no record now, send the export again'
    return refuse('unavailable', detail, { retryAfterSecs: 1 })
  }

  /** How far the import came. */
  told(): StrandImported {
    return {
      agent_id: this.#manifest.agent,
      strand: this.#manifest.strand,
      ...this.#counts(),
      first_seq: this.#firstSeq,
      last_seq: this.#lastSeq,
      chain_head: this.#stands?.headHash ?? this.#manifest.strand,
      record_count: this.#stands?.headSeq ?? 0,
      open: this.#stands?.open ?? false,
    }
  }

  /** A refusal that says how far the import came: what was committed stays. */
  toldOf(refusal: Refusal): Refusal {
    return { ...refusal, extra: { ...refusal.extra, ...this.#counts() } }
  }

  #counts(): { imported: number; skipped: number } {
    return { imported: this.#imported, skipped: this.#taken - this.#imported }
  }

  async #check(): Promise<Refusal | undefined> {
    const task = {
      manifest: this.#manifest,
      stage: this.#stage.path,
      lines: this.#waiting.parts,
      ...(this.#position !== undefined && { position: this.#position }),
    }
    const checked = await readsBy(this.#readers)('importCheck', task).catch(refusalOf)
    if ('code' in checked) return checked
    if ('full' in checked) return refuse('storage_full', 'The data disk has no room for the export')
    if ('fault' in checked) {
      const { line, seq, reason } = checked.fault
      return this.#rejected(line, reason, seq)
    }
    this.#position = checked.position
    this.#lines += checked.linesTaken
    this.#ended = checked.ended
    this.#waiting.drop(checked.bytesTaken)
    // A group with a late seal would be checked again with each line: this way, it is with each doubling.
    this.#waitFor =
      checked.bytesTaken === 0 ? Math.min(2 * this.#waiting.length, limits.importSealedBytesMax) : 0
    if (this.#waiting.length > limits.importSealedBytesMax) {
      return refuse(
        'too_large',
        `Expected at most ${limits.importSealedBytesMax} bytes to wait for their seal`,
      )
    }
    const isFirst = checked.staged && !this.#staged
    this.#staged ||= checked.staged
    return isFirst && !this.#ended ? this.#tryFirst() : undefined
  }

  #commandOf(records: CheckedRecords) {
    const { agent, strand } = this.#manifest
    const { admin, agents } = this.#request
    return { kind: 'strandImport', agent, strand, ...records, admin, agents, options: {} } as const
  }

  async #commit(records: CheckedRecords): Promise<Refusal | undefined> {
    const command = this.#commandOf(records)
    const outcome = await this.#ask((told) => ({ ...command, told }))
    if (outcome.kind !== 'imported') return this.#refusedBy(outcome)
    this.#taken += records.lastSeq - records.firstSeq + 1
    this.#imported += outcome.imported
    this.#stands = outcome
    if (outcome.imported === 0) return undefined
    this.#firstSeq ??= records.lastSeq - outcome.imported + 1
    this.#lastSeq = records.lastSeq
    return undefined
  }

  /** A refusal of the shard, with the line that it is about. */
  #refusedBy(outcome: Outcome): Refusal {
    const refusal = unexpected(outcome)
    const seq = refusal.extra?.['seq']
    if (typeof seq !== 'number' || refusal.code !== 'import_rejected') return refusal
    return rejected({ line: seq - this.#manifest.fromSeq + LINES_BEFORE, seq, reason: refusal.detail })
  }

  async #open(): Promise<Refusal | undefined> {
    const { agent, strand, toSeq } = this.#manifest
    const { hold, seed } = this.#request
    const given = seed !== undefined && keyPairFromSeed(seed).publicKey === this.#position?.place.key
    if (given && !hold) {
      // Keys can belong to another shard than agents, so a key is claimed first; a claim without its agent does no
      // harm.
      const { publicKey } = keyPairFromSeed(seed)
      const claim = await this.#shards.ask(publicKey, { kind: 'keyClaim', publicKey, agent })
      if (claim.kind !== 'done') return unexpected(claim)
    }
    const command = { kind: 'strandImportEnd', agent, strand, lastSeq: toSeq, hold, options: {} } as const
    const outcome = await this.#ask((told) => ({ ...command, told, ...(given && { seed }) }))
    if (outcome.kind !== 'imported') return unexpected(outcome)
    this.#stands = outcome
    return undefined
  }

  /** Asks the shard of the agent. Before that changes anything, the import is recorded on the audit strand. */
  async #ask(commandOf: (told: boolean) => Command): Promise<Outcome> {
    const { agent } = this.#manifest
    const outcome = await this.#shards.ask(agent, commandOf(this.#begunSeq !== undefined))
    if (outcome.kind !== 'importUntold') return outcome
    this.#begunSeq = await this.#tellAudit({ type: 'sys/imported', body: this.#about('begun') })
    if (this.#begunSeq !== undefined) return this.#shards.ask(agent, commandOf(true))
    const detail = 'The audit strand takes no record now, try again'
    return refuse('unavailable', detail, { retryAfterSecs: 1 })
  }

  /**
   * Records on the audit strand how the import ended, if it changed anything. If that fails, the record of its
   * beginning is there.
   */
  async tellEnd(code: string | undefined): Promise<void> {
    if (this.#begunSeq === undefined) return
    const end = { begun_seq: this.#begunSeq, imported: this.#imported, open: this.#stands?.open ?? false }
    const body = { ...this.#about('ended'), ...end, ...(code !== undefined && { code }) }
    await this.#tellAudit({ type: 'sys/imported', body })
  }

  #about(state: ImportTold['state']): ImportTold {
    const { agent, strand, fromSeq, toSeq } = this.#manifest
    return { state, agent, strand, principal: this.#request.principal, from_seq: fromSeq, to_seq: toSeq }
  }

  /** 422 for a line, which counts from 0 after those that were taken. */
  #rejected(line: number, reason: string, seq?: number): Refusal {
    const place = { line: this.#lines + line, reason }
    return rejected(seq === undefined ? place : { ...place, seq })
  }
}

/** 422 for a line of an export, which counts from 0 in `line`. */
function rejected({ line, seq, reason }: { line: number; seq?: number; reason: string }): Refusal {
  const record = seq === undefined ? '' : `, record ${seq}`
  return refuse('import_rejected', `Line ${line + 1}${record}: ${reason}`, {
    extra: { line: line + 1, ...(seq !== undefined && { seq }) },
  })
}

/**
 * Bytes that come in parts and are handed to other threads without a copy. They stay in parts: one piece would have to
 * be copied each time it grows.
 */
export class SharedBytes {
  readonly #memory: BodyMemory
  #parts: Uint8Array[] = []
  #length = 0

  /** @param memory counts them */
  constructor(memory: BodyMemory) {
    this.#memory = memory
  }

  get length(): number {
    return this.#length
  }

  get parts(): readonly Uint8Array[] {
    return this.#parts
  }

  /** Adds a copy of the bytes; nothing once there is no memory for the body, which has ended then. */
  add(bytes: Uint8Array): void {
    if (!this.#memory.add(bytes.length)) return
    const copy = new Uint8Array(new SharedArrayBuffer(bytes.length))
    copy.set(bytes)
    this.#parts.push(copy)
    this.#length += bytes.length
  }

  /** Drops so many of the first bytes. */
  drop(count: number): void {
    let left = count
    while (left > 0) {
      const first = this.#parts[0]
      if (first === undefined) break
      if (first.length > left) {
        this.#parts[0] = first.subarray(left)
        break
      }
      left -= first.length
      this.#parts.shift()
    }
    this.#length -= count
    this.#memory.give(count)
  }
}
