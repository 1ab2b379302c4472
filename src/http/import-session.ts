import { refusalOf, refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { ReaderPool } from '../dispatch/reader-pool.js'
import type { Shards } from '../dispatch/shards.js'
import type { ImportTold } from '../protocol/audit-messages.js'
import type { CheckedRecords, ImportedOutcome } from '../protocol/import-messages.js'
import type { Command, Outcome } from '../protocol/messages.js'
import { unexpected } from '../routes/answers.js'
import type { ImportRequest } from '../routes/route.js'
import type { ExportPosition } from '../proof/export-check.js'
import { keyPairFromSeed } from '../strand/keys.js'
import type { Manifest } from '../strand/strand-export.js'
import type { StrandImported } from '../wire/imports.js'
import { GatheredBytes } from './gathered-bytes.js'
import type { ImportParts } from './import.js'

/** Lines before the first record of an export. */
const LINES_BEFORE = 1

/**
 * The lines of one export on their way into the store: each part is checked by a reader of the pool, then committed by
 * the shard of the agent, while the next one is checked. Lines that wait for their seal are kept for the next part.
 */
export class ImportSession {
  readonly #shards: Shards
  readonly #readers: ReaderPool
  readonly #tellHead: ImportParts['tellHead']
  readonly #tellAudit: ImportParts['tellAudit']
  readonly #manifest: Manifest
  readonly #request: ImportRequest
  #position: ExportPosition | undefined
  /** Lines that could not be taken yet, and how many bytes there must be before they are looked at again. */
  readonly #waiting = new GatheredBytes({ shared: true })
  #waitFor = 0
  #lines = LINES_BEFORE
  #ended = false
  /** The commit under way. */
  #committing: Promise<Refusal | undefined> = Promise.resolve(undefined)
  #stands: ImportedOutcome | undefined
  #taken = 0
  #imported = 0
  #firstSeq: number | null = null
  #lastSeq: number | null = null
  /** Seq of the record that tells of the import, on the audit strand; undefined while it has changed nothing. */
  #begunSeq: number | undefined

  constructor(
    { shards, readers, tellHead, tellAudit }: Omit<ImportParts, 'refusal' | 'onError'>,
    { manifest, request }: { manifest: Manifest; request: ImportRequest },
  ) {
    this.#shards = shards
    this.#readers = readers
    this.#tellHead = tellHead
    this.#tellAudit = tellAudit
    this.#manifest = manifest
    this.#request = request
  }

  /** Takes whole lines behind those before. */
  async take(lines: Buffer): Promise<Refusal | undefined> {
    if (this.#ended) return this.#rejected(0, 'A line follows the trailer')
    this.#waiting.add(lines)
    if (this.#waiting.length < this.#waitFor) return undefined
    if (this.#readers.full) {
      return refuse('overloaded', 'Expected fewer exports and imports at once', { retryAfterSecs: 1 })
    }
    return this.#check()
  }

  /** The body is at its end: so must the export be. Then the agent takes writes, where its key can be signed with. */
  async end(): Promise<Refusal | undefined> {
    const refusal = this.#waiting.length > 0 && !this.#ended ? await this.#check() : undefined
    const committed = await this.#committing
    if (refusal !== undefined || committed !== undefined) return committed ?? refusal
    if (!this.#ended) return this.#rejected(0, 'The export is cut off: it has no trailer')
    const refused = this.#stands?.open === true ? undefined : await this.#open()
    return refused ?? this.#tell()
  }

  /** Imported records have clocks of the past, so the server log finds the head only when it is told of it. */
  async #tell(): Promise<Refusal | undefined> {
    if (this.#tellHead === undefined || this.#stands === undefined) return undefined
    const { headSeq, headHash } = this.#stands
    const { agent, strand } = this.#manifest
    const told = await this.#tellHead({ agent, strand, size: headSeq + 1, hash: headHash })
    if (told) return undefined
    const detail = 'Expected the log of strand heads to take the head: send the export again'
    return refuse('unavailable', detail, { retryAfterSecs: 1 })
  }

  /** How far it came. */
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

  /** A refusal with how far it came before: what was committed stays. */
  async toldOf(refusal: Refusal): Promise<Refusal> {
    await this.#committing
    return { ...refusal, extra: { ...refusal.extra, ...this.#counts() } }
  }

  #counts(): { imported: number; skipped: number } {
    return { imported: this.#imported, skipped: this.#taken - this.#imported }
  }

  async #check(): Promise<Refusal | undefined> {
    const lines = this.#waiting.take()
    const task = {
      manifest: this.#manifest,
      lines,
      ...(this.#position !== undefined && { position: this.#position }),
    }
    const checked = await this.#readers.importCheck(task).catch(refusalOf)
    if ('code' in checked) return checked
    const committed = await this.#committing
    if (committed !== undefined) return committed
    if ('fault' in checked) {
      const { line, seq, reason } = checked.fault
      return this.#rejected(line, reason, seq)
    }
    this.#position = checked.position
    this.#lines += checked.linesTaken
    this.#ended = checked.ended
    this.#waiting.add(lines.subarray(checked.bytesTaken))
    // A group that is sealed far behind would be read again with each line: so it is with each doubling.
    this.#waitFor =
      checked.bytesTaken === 0 ? Math.min(2 * this.#waiting.length, limits.importSealedBytesMax) : 0
    if (checked.records !== undefined) this.#committing = this.#commit(checked.records)
    if (this.#waiting.length <= limits.importSealedBytesMax) return undefined
    return refuse('too_large', `Expected at most ${limits.importSealedBytesMax} bytes to wait for their seal`)
  }

  async #commit(records: CheckedRecords): Promise<Refusal | undefined> {
    const { agent, strand, fromSeq } = this.#manifest
    const { admin } = this.#request
    const command = { kind: 'strandImport', agent, strand, ...records, admin, options: {} } as const
    const outcome = await this.#ask((told) => ({ ...command, told }))
    if (outcome.kind !== 'imported') {
      const refusal = unexpected(outcome)
      const seq = refusal.extra?.['seq']
      if (typeof seq !== 'number' || refusal.code !== 'import_rejected') return refusal
      const line = seq - fromSeq + LINES_BEFORE
      return rejected({ line, seq, reason: refusal.detail })
    }
    this.#taken += records.lastSeq - records.firstSeq + 1
    this.#imported += outcome.imported
    this.#stands = outcome
    if (outcome.imported === 0) return undefined
    this.#firstSeq ??= records.lastSeq - outcome.imported + 1
    this.#lastSeq = records.lastSeq
    return undefined
  }

  async #open(): Promise<Refusal | undefined> {
    const { agent, strand, toSeq } = this.#manifest
    const { hold, seed } = this.#request
    const given = seed !== undefined && keyPairFromSeed(seed).publicKey === this.#position?.place.key
    if (given && !hold) {
      // Keys are owned by another shard than agents, so a key is claimed first; a claim without its agent does no harm.
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

  /** Asks the shard of the agent; where that would change something, the audit strand is told of the import before. */
  async #ask(commandOf: (told: boolean) => Command): Promise<Outcome> {
    const { agent } = this.#manifest
    const outcome = await this.#shards.ask(agent, commandOf(this.#begunSeq !== undefined))
    if (outcome.kind !== 'importUntold') return outcome
    this.#begunSeq = await this.#tellAudit({ type: 'sys/imported', body: this.#about('begun') })
    if (this.#begunSeq !== undefined) return this.#shards.ask(agent, commandOf(true))
    const detail = 'The audit strand takes no record now, try again'
    return { kind: 'refused', refusal: refuse('unavailable', detail, { retryAfterSecs: 1 }) }
  }

  /** Tells the audit strand how it ended, where it changed anything; what cannot be told then was told at its beginning. */
  async tellEnd(code: string | undefined): Promise<void> {
    await this.#committing
    if (this.#begunSeq === undefined) return
    const end = { begun_seq: this.#begunSeq, imported: this.#imported, open: this.#stands?.open ?? false }
    const body = { ...this.#about('ended'), ...end, ...(code !== undefined && { code }) }
    await this.#tellAudit({ type: 'sys/imported', body })
  }

  #about(state: ImportTold['state']): ImportTold {
    const { agent, strand, fromSeq, toSeq } = this.#manifest
    return { state, agent, strand, principal: this.#request.principal, from_seq: fromSeq, to_seq: toSeq }
  }

  /** 422 for a line, which counts from 0 behind those that were taken. */
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
