import { isErrorCode, type ErrorCode } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import {
  isStoredOutcome,
  type AgentIngested,
  type IngestedOutcome,
  type LineFault,
} from '../../../protocol/record-messages.js'
import type { IngestManySummary, IngestSummary } from '../../../wire/ingest.js'

/**
 * Sums the outcomes of the chunks of one ingest stream. Memory does not grow with refused lines: agents
 * without an accepted line have no row, and at most `limits.ingestAgentsNamedMax` of the others have one.
 */
export class IngestTotals {
  readonly #agents = new Map<string, AgentIngested>()
  /** Refused lines of other agents; shown if a later line of the agent is accepted. */
  readonly #onlyRefused = new Map<string, number>()
  readonly #rejectedByCode = new Map<string, number>()
  /** Whether more agents had an accepted line than have a row. */
  #truncated = false
  #faults: LineFault[] = []
  #accepted = 0
  #rejected = 0
  #kept = 0
  #duplicates = 0
  /** The first line that on_error=keep did not store because it is too long. */
  tooLong: number | undefined
  readonly #onRefused: (code: string, count: number) => void
  /**
   * Whether every answer so far was replayed for the same Idempotency-Key; undefined before the first one.
   */
  #replayed: boolean | undefined

  /** @param onRefused counts newly refused lines, not those of a replayed answer */
  constructor(onRefused: (code: string, count: number) => void = () => {}) {
    this.#onRefused = onRefused
  }

  get accepted(): number {
    return this.#accepted
  }

  get rejected(): number {
    return this.#rejected
  }

  /** Refused lines that were stored as records. */
  get kept(): number {
    return this.#kept
  }

  get replayed(): boolean {
    return this.#replayed === true
  }

  add(outcome: IngestedOutcome): void {
    this.#accepted += outcome.accepted
    this.#rejected += outcome.rejected
    this.#kept += outcome.kept ?? 0
    this.#duplicates += outcome.duplicates ?? 0
    const isIdempotent = isStoredOutcome(outcome) || outcome.replayed === true
    if (isIdempotent) this.#replayed = (this.#replayed ?? true) && outcome.replayed === true
    for (const row of outcome.agents) if (row.agent !== '') this.#addAgent(row)
    this.#addCodes(outcome)
    this.#addFaults(outcome.faults)
  }

  /** Adds a refused line that was sent to no shard. */
  addFault(fault: LineFault): void {
    this.#rejected++
    this.#onRefused(fault.refusal.code, 1)
    this.#addCode(fault.refusal.code, 1)
    this.#addFaults([fault])
  }

  /** Resets the accepted lines: another line was invalid, and lines are written all or none. */
  resetAccepted(): void {
    this.#accepted = 0
    this.#agents.clear()
    this.#truncated = false
  }

  one(agent: string): IngestSummary {
    const row = this.#agents.get(agent)
    return { ...this.counts(), errors: this.#errors(false), ...headOf(row) }
  }

  /**
   * The summary of an ingest into many agents, sorted by name, so that repeated requests get the same answer
   * although shards answer in any order.
   */
  many(): IngestManySummary {
    const rows = [...this.#agents]
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([name, row]) => [name, { accepted: row.accepted, rejected: row.rejected, ...headOf(row) }])
    // An assignment to a member named __proto__, which is a name of an agent, would set the prototype.
    const agents: IngestManySummary['agents'] = Object.fromEntries(rows)
    const summary = { ...this.counts(), errors: this.#errors(true), agents }
    return this.#truncated ? { ...summary, agents_truncated: true } : summary
  }

  codes(): ErrorCode[] {
    return [...this.#rejectedByCode.keys()].filter(isErrorCode)
  }

  /** Numbers of lines so far. */
  counts(): Pick<IngestSummary, 'accepted' | 'rejected' | 'duplicates' | 'kept' | 'rejected_by_code'> {
    const duplicates = this.#duplicates > 0 ? { duplicates: this.#duplicates } : {}
    const counts = { accepted: this.#accepted, rejected: this.#rejected, ...duplicates }
    if (this.#rejected === 0) return counts
    const byCode = [...this.#rejectedByCode].sort(([left], [right]) => (left < right ? -1 : 1))
    const kept = this.#kept > 0 ? { kept: this.#kept } : {}
    return { ...counts, ...kept, rejected_by_code: Object.fromEntries(byCode) }
  }

  #addCode(code: string, count: number): void {
    this.#rejectedByCode.set(code, (this.#rejectedByCode.get(code) ?? 0) + count)
  }

  #addCodes({ rejected, rejectedByCode, faults, replayed }: IngestedOutcome): void {
    if (rejectedByCode !== undefined) {
      for (const [code, count] of Object.entries(rejectedByCode)) {
        if (replayed !== true) this.#onRefused(code, count)
        this.#addCode(code, count)
      }
      return
    }
    // The answer was stored by an earlier version: only the codes of its first errors are known.
    for (const { refusal } of faults) this.#addCode(refusal.code, 1)
    if (rejected > faults.length) this.#addCode('validation_failed', rejected - faults.length)
  }

  #addAgent(row: AgentIngested): void {
    const existing = this.#agents.get(row.agent)
    if (existing !== undefined) mergeRow(existing, row)
    else if (row.accepted > 0 || row.lastSeq >= 0) this.#addRow(row)
    else {
      const refused = this.#onlyRefused.get(row.agent)
      if (refused === undefined && this.#onlyRefused.size >= limits.ingestAgentsNamedMax) return
      this.#onlyRefused.set(row.agent, (refused ?? 0) + row.rejected)
    }
  }

  #addRow(row: AgentIngested): void {
    if (this.#agents.size >= limits.ingestAgentsNamedMax) {
      this.#truncated = true
      return
    }
    const refused = this.#onlyRefused.get(row.agent) ?? 0
    this.#onlyRefused.delete(row.agent)
    this.#agents.set(row.agent, { ...row, rejected: row.rejected + refused })
  }

  /** Keeps the errors of the first lines; chunks of several shards answer in any order. */
  #addFaults(faults: readonly LineFault[]): void {
    const last = this.#faults.length < limits.ingestFaultsMax ? undefined : this.#faults.at(-1)
    const earlier = last === undefined ? faults : faults.filter(({ line }) => line < last.line)
    if (earlier.length === 0) return
    this.#faults.push(...earlier)
    this.#faults.sort((left, right) => left.line - right.line)
    this.#faults.length = Math.min(this.#faults.length, limits.ingestFaultsMax)
  }

  #errors(withAgent: boolean): IngestSummary['errors'] {
    return this.#faults.map(({ line, agent, refusal }) => ({
      line,
      ...(withAgent && agent !== '' ? { agent } : {}),
      code: refusal.code,
      detail: refusal.detail,
    }))
  }
}

function mergeRow(row: AgentIngested, more: AgentIngested): void {
  row.accepted += more.accepted
  row.rejected += more.rejected
  if (more.lastSeq < 0) return
  if (row.firstSeq < 0) row.firstSeq = more.firstSeq
  row.lastSeq = more.lastSeq
  row.chainHead = more.chainHead
}

function headOf(
  row: AgentIngested | undefined,
): Pick<IngestSummary, 'first_seq' | 'last_seq' | 'chain_head'> {
  if (row === undefined || row.lastSeq < 0) return { first_seq: null, last_seq: null, chain_head: null }
  return { first_seq: row.firstSeq, last_seq: row.lastSeq, chain_head: row.chainHead }
}
