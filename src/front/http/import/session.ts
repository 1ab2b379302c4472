import { refusalOf, refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { readsBy, type ImportPosition, type Readers } from '../../../protocol/reader-tasks.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { AuditEntry, ImportAudit } from '../../../protocol/audit-messages.js'
import type { CheckedRecords, ImportEnd, ImportedOutcome } from '../../../protocol/import-messages.js'
import type { Command, Outcome } from '../../../protocol/messages.js'
import type { AgentHead } from '../../../protocol/server-log-messages.js'
import { unexpected } from '../../routes/answers.js'
import type { ImportRequest } from '../../routes/route.js'
import { keyPairFromSeed } from '../../../strand/keys.js'
import { isBlank } from '../../../strand/json-scanner.js'
import type { Manifest } from '../../../strand/strand-export.js'
import type { StrandImported } from '../../../wire/strand.js'
import type { BodyMemory } from '../../../base/gathered-bytes.js'
import type { ImportStage } from './stage.js'

export interface SessionParts {
  shards: Shards
  readers: Readers
  /**
   * Writes a head to the server log, which would not find it by itself; resolves to false if that is not
   * possible now. Absent without a log.
   */
  logHead?(head: AgentHead): Promise<boolean>
  /** Appends a record to the audit strand. @returns its seq; undefined if that is not possible now */
  appendAudit(entry: AuditEntry): Promise<number | undefined>
}

export interface ImportSource {
  request: ImportRequest
  stage: ImportStage
  /** Counts the bytes that are in memory. */
  memory: BodyMemory
}

const HEADER_LINES = 1

/**
 * Imports the lines of one export. A reader of the pool checks each part and appends it to the stage file. At
 * the end of the export the shard of the agent commits the parts one after another. Lines whose seal has not
 * arrived yet are checked with the next part.
 */
export class ImportSession {
  readonly #shards: Shards
  readonly #readers: Readers
  readonly #logHead: SessionParts['logHead']
  readonly #appendAudit: SessionParts['appendAudit']
  readonly #manifest: Manifest
  readonly #request: ImportRequest
  readonly #stage: ImportStage
  #position: ImportPosition | undefined
  /** Lines that could not be checked yet, and how many bytes are needed before they are checked again. */
  readonly #waiting: SharedBytes
  readonly #memory: BodyMemory
  #waitFor = 0
  #lines = HEADER_LINES
  #ended = false
  #staged = false
  #latest: ImportedOutcome | undefined
  #checkedCount = 0
  #importedCount = 0
  #firstSeq: number | null = null
  #lastSeq: number | null = null
  /** Seq of the audit record of the import's start; undefined while it has changed nothing. */
  #begunSeq: number | undefined

  constructor(
    { shards, readers, logHead, appendAudit }: SessionParts,
    { manifest, request, stage, memory }: ImportSource & { manifest: Manifest },
  ) {
    this.#memory = memory
    this.#waiting = new SharedBytes(memory)
    this.#shards = shards
    this.#readers = readers
    this.#logHead = logHead
    this.#appendAudit = appendAudit
    this.#manifest = manifest
    this.#request = request
    this.#stage = stage
  }

  async importLines(lines: Buffer): Promise<Refusal | undefined> {
    if (this.#ended) return isBlank(lines) ? undefined : this.#rejected(0, 'A line follows the trailer')
    this.#waiting.add(lines)
    if (this.#waiting.length < this.#waitFor) return undefined
    return this.#check()
  }

  /**
   * Ends the import when the body has ended; fails if the export is incomplete. Commits its records; the last
   * ones open the agent for writes, if the server can sign with its key.
   * @param stop returns why no more may be committed
   */
  async end(stop: () => Refusal | undefined): Promise<Refusal | undefined> {
    const refusal = this.#waiting.length > 0 && !this.#ended ? await this.#check() : undefined
    if (refusal !== undefined) return refusal
    if (!this.#ended) return this.#rejected(0, 'The export is cut off: it has no trailer')
    const firstRefusal = (await this.#tryFirst()) ?? (await this.#claimKey())
    return firstRefusal ?? (await this.#commitAll(stop)) ?? stop() ?? this.#logLatestHead()
  }

  async #commitAll(stop: () => Refusal | undefined): Promise<Refusal | undefined> {
    if (!this.#staged) return undefined
    for await (const part of this.#stage.parts(this.#memory)) {
      const refusal = stop() ?? (await this.#commit(part))
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  /**
   * Checks whether the first part could be imported, before the client sends all others, and, with the key of
   * the last record, before anything is written.
   */
  async #tryFirst(): Promise<Refusal | undefined> {
    if (!this.#staged) return undefined
    for await (const part of this.#stage.parts(this.#memory)) {
      const outcome = await this.#shards.request(this.#manifest.agent, {
        ...this.#commandOf(part),
        audited: false,
      })
      if (outcome.kind === 'imported' || outcome.kind === 'auditRequired') return undefined
      return this.#refusedBy(outcome)
    }
    return undefined
  }

  /** Imported records have clocks of the past, so the server log would not find the new head by itself. */
  async #logLatestHead(): Promise<Refusal | undefined> {
    if (this.#logHead === undefined || this.#latest === undefined) return undefined
    const { headSeq, headHash } = this.#latest
    const { agent, strand } = this.#manifest
    const isLogged = await this.#logHead({ agent, strand, size: headSeq + 1, hash: headHash })
    if (isLogged) return undefined
    const detail = 'The log of strand heads cannot be written now, send the export again'
    return refuse('unavailable', detail, { retryAfterSecs: 1 })
  }

  /** The result of the import so far. */
  result(): StrandImported {
    return {
      agent_id: this.#manifest.agent,
      strand: this.#manifest.strand,
      ...this.#counts(),
      first_seq: this.#firstSeq,
      last_seq: this.#lastSeq,
      chain_head: this.#latest?.headHash ?? this.#manifest.strand,
      record_count: this.#latest?.headSeq ?? 0,
      open: this.#latest?.open ?? false,
    }
  }

  /** Adds the counts to a refusal, because records that were already committed stay. */
  withCounts(refusal: Refusal): Refusal {
    return { ...refusal, extra: { ...refusal.extra, ...this.#counts() } }
  }

  #counts(): { imported: number; skipped: number } {
    return { imported: this.#importedCount, skipped: this.#checkedCount - this.#importedCount }
  }

  async #check(): Promise<Refusal | undefined> {
    const task = {
      manifest: this.#manifest,
      stage: this.#stage.path,
      lines: this.#waiting.parts,
      agents: this.#request.agents,
      ...(this.#position !== undefined && { position: this.#position }),
    }
    const checked = await readsBy(this.#readers, this.#request.author.principal)('importCheck', task).catch(
      refusalOf,
    )
    if ('code' in checked) return checked
    if ('full' in checked)
      return refuse('storage_full', 'The data disk has not enough free space for the export')
    if ('fault' in checked) {
      const { line, seq, reason, forbidden } = checked.fault
      return forbidden ? refuse('forbidden', `Record ${seq}: ${reason}`) : this.#rejected(line, reason, seq)
    }
    this.#position = checked.position
    this.#lines += checked.linesTaken
    this.#ended = checked.ended
    this.#waiting.drop(checked.bytesTaken)
    // Records with a late seal are checked again each time the waiting bytes have doubled, not with each
    // line.
    this.#waitFor =
      checked.bytesTaken === 0 ? Math.min(2 * this.#waiting.length, limits.importSealedBytesMax) : 0
    if (this.#waiting.length > limits.importSealedBytesMax) {
      return refuse(
        'too_large',
        `Expected at most ${limits.importSealedBytesMax} bytes of records before their seal`,
      )
    }
    const isFirst = checked.staged && !this.#staged
    this.#staged ||= checked.staged
    return isFirst && !this.#ended ? this.#tryFirst() : undefined
  }

  #commandOf(records: CheckedRecords) {
    const { agent, strand, fromSeq } = this.#manifest
    const end = this.#end
    const about = { agent, strand, fromSeq, ...this.#request.author, ...(end !== undefined && { end }) }
    return { kind: 'strandImport', ...records, ...about, options: {} } as const
  }

  /** How the import ends, which is known after the trailer; undefined if more records will follow. */
  get #end(): ImportEnd | undefined {
    const { hold, seed } = this.#request
    const key = this.#position?.place.key
    if (hold || !this.#ended || key === undefined) return undefined
    const isOwn = seed !== undefined && keyPairFromSeed(seed).publicKey === key
    return { lastSeq: this.#manifest.toSeq, publicKey: key, ...(isOwn && { seed }) }
  }

  /**
   * Claims the key of the seed that was sent. It can belong to another shard than the agent, so it is claimed
   * first; a claim without its agent does no harm.
   */
  async #claimKey(): Promise<Refusal | undefined> {
    const end = this.#end
    if (end?.seed === undefined) return undefined
    const { publicKey } = end
    const claim = await this.#shards.request(publicKey, {
      kind: 'keyClaim',
      publicKey,
      agent: this.#manifest.agent,
    })
    return claim.kind === 'done' ? undefined : unexpected(claim)
  }

  async #commit(records: CheckedRecords): Promise<Refusal | undefined> {
    const command = this.#commandOf(records)
    const outcome = await this.#sendRecorded((isRecorded) => ({ ...command, audited: isRecorded }))
    if (outcome.kind !== 'imported') return this.#refusedBy(outcome)
    this.#checkedCount += records.lastSeq - records.firstSeq + 1
    this.#importedCount += outcome.imported
    this.#latest = outcome
    if (outcome.imported === 0) return undefined
    this.#firstSeq ??= records.lastSeq - outcome.imported + 1
    this.#lastSeq = records.lastSeq
    return undefined
  }

  /** The refusal of a shard, with its line number in the export. */
  #refusedBy(outcome: Outcome): Refusal {
    const refusal = unexpected(outcome)
    const seq = refusal.extra?.['seq']
    if (typeof seq !== 'number' || refusal.code !== 'import_rejected') return refusal
    return rejected({ line: seq - this.#manifest.fromSeq + HEADER_LINES, seq, reason: refusal.detail })
  }

  /**
   * Sends a command to the shard of the agent. Before it changes anything, the import is recorded on the
   * audit strand.
   */
  async #sendRecorded(commandOf: (isRecorded: boolean) => Command): Promise<Outcome> {
    const { agent } = this.#manifest
    const outcome = await this.#shards.request(agent, commandOf(this.#begunSeq !== undefined))
    if (outcome.kind !== 'auditRequired') return outcome
    this.#begunSeq = await this.#appendAudit({ type: 'sys/imported', body: this.#auditBody('begun') })
    if (this.#begunSeq !== undefined) return this.#shards.request(agent, commandOf(true))
    const detail = 'The audit strand cannot be written now, try again'
    return refuse('unavailable', detail, { retryAfterSecs: 1 })
  }

  /**
   * Records the end of the import on the audit strand, if it changed anything. If that fails, the record of
   * its start remains.
   */
  async recordEnd(code: string | undefined): Promise<void> {
    if (this.#begunSeq === undefined) return
    const end = {
      begun_seq: this.#begunSeq,
      imported: this.#importedCount,
      open: this.#latest?.open ?? false,
    }
    const body = { ...this.#auditBody('ended'), ...end, ...(code !== undefined && { code }) }
    await this.#appendAudit({ type: 'sys/imported', body })
  }

  #auditBody(state: ImportAudit['state']): ImportAudit {
    const { agent, strand, fromSeq, toSeq } = this.#manifest
    return {
      state,
      agent,
      strand,
      principal: this.#request.author.principal,
      from_seq: fromSeq,
      to_seq: toSeq,
    }
  }

  /** 422 for a line; `line` counts from 0 after the checked lines. */
  #rejected(line: number, reason: string, seq?: number): Refusal {
    const rejection = { line: this.#lines + line, reason }
    return rejected(seq === undefined ? rejection : { ...rejection, seq })
  }
}

/** 422 for a line of an export; `line` counts from 0. */
function rejected({ line, seq, reason }: { line: number; seq?: number; reason: string }): Refusal {
  const record = seq === undefined ? '' : `, record ${seq}`
  return refuse('import_rejected', `Line ${line + 1}${record}: ${reason}`, {
    extra: { line: line + 1, ...(seq !== undefined && { seq }) },
  })
}

/**
 * Bytes that arrive in parts and are passed to other threads without copying. They stay in parts, because one
 * piece would have to be copied each time it grows.
 */
export class SharedBytes {
  readonly #memory: BodyMemory
  #parts: Uint8Array[] = []
  #length = 0

  /** @param memory counts the bytes */
  constructor(memory: BodyMemory) {
    this.#memory = memory
  }

  get length(): number {
    return this.#length
  }

  get parts(): readonly Uint8Array[] {
    return this.#parts
  }

  /** Adds a copy of the bytes; adds nothing if the memory limit has ended the upload. */
  add(bytes: Uint8Array): void {
    if (!this.#memory.reserve(bytes.length)) return
    const copy = new Uint8Array(new SharedArrayBuffer(bytes.length))
    copy.set(bytes)
    this.#parts.push(copy)
    this.#length += bytes.length
  }

  /** Removes the first `count` bytes. */
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
    this.#memory.release(count)
  }
}
