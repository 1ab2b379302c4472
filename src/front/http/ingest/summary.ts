import { isErrorCode, type ErrorCode } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import {
  isKept,
  type AgentIngested,
  type IngestedOutcome,
  type LineFault,
} from '../../../protocol/messages.js'
import type { IngestManySummary, IngestSummary } from '../../../wire/ingest.js'

/**
 * Adds up what became of the chunks of one ingest stream. Memory does not grow with refused lines: agents that took
 * nothing have no row, and of the others at most `limits.ingestAgentsNamedMax` have one.
 */
export class IngestTotals {
  /** Agents that took a line. */
  readonly #agents = new Map<string, AgentIngested>()
  /** How many lines of other agents were refused: the number is shown if the agent takes a line later. */
  readonly #onlyRefused = new Map<string, number>()
  readonly #rejectedByCode = new Map<string, number>()
  /** More agents took a line than have a row. */
  #truncated = false
  #faults: LineFault[] = []
  #accepted = 0
  #rejected = 0
  #kept = 0
  #duplicates = 0
  readonly #onRefused: (code: string, count: number) => void
  /** True while every answer was an earlier one, repeated under the same Idempotency-Key. */
  #replayed: boolean | undefined

  /** @param onRefused counts lines that are refused now, not those of a repeated answer */
  constructor(onRefused: (code: string, count: number) => void = () => {}) {
    this.#onRefused = onRefused
  }

  get accepted(): number {
    return this.#accepted
  }

  get rejected(): number {
    return this.#rejected
  }

  /** Refused lines that were kept as records. */
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
    const kept = isKept(outcome) || outcome.replayed === true
    if (kept) this.#replayed = (this.#replayed ?? true) && outcome.replayed === true
    for (const row of outcome.agents) if (row.agent !== '') this.#addAgent(row)
    this.#addCodes(outcome)
    this.#addFaults(outcome.faults)
  }

  /** Adds a line that no shard saw. */
  addFault(fault: LineFault): void {
    this.#rejected++
    this.#onRefused(fault.refusal.code, 1)
    this.#addCode(fault.refusal.code, 1)
    this.#addFaults([fault])
  }

  /** Takes back every good line: another line was bad, and it was all or none. */
  nothingWritten(): void {
    this.#accepted = 0
    this.#agents.clear()
    this.#truncated = false
  }

  /** The summary of an ingest into one agent. */
  one(agent: string): IngestSummary {
    const row = this.#agents.get(agent)
    return { ...this.counts(), errors: this.#errors(false), ...reached(row) }
  }

  /** The summary of an ingest into many, by name: shards answer in any order, and a repetition gets the same answer. */
  many(): IngestManySummary {
    const agents: IngestManySummary['agents'] = {}
    const rows = [...this.#agents].sort(([left], [right]) => (left < right ? -1 : 1))
    for (const [name, row] of rows) {
      agents[name] = { accepted: row.accepted, rejected: row.rejected, ...reached(row) }
    }
    const told = { ...this.counts(), errors: this.#errors(true), agents }
    return this.#truncated ? { ...told, agents_truncated: true } : told
  }

  /** The codes that lines were refused with. */
  codes(): ErrorCode[] {
    return [...this.#rejectedByCode.keys()].filter(isErrorCode)
  }

  /** Lines that were written and refused so far. */
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
    // The answer was kept by an earlier version: only the codes of its first faults are known.
    for (const { refusal } of faults) this.#addCode(refusal.code, 1)
    if (rejected > faults.length) this.#addCode('validation_failed', rejected - faults.length)
  }

  #addAgent(row: AgentIngested): void {
    const before = this.#agents.get(row.agent)
    if (before !== undefined) joinRow(before, row)
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

  /** The first faults of the stream by line; chunks of several shards answer in any order. */
  #addFaults(faults: readonly LineFault[]): void {
    const last = this.#faults.length < limits.ingestFaultsMax ? undefined : this.#faults.at(-1)
    const earlier = last === undefined ? faults : faults.filter(({ line }) => line < last.line)
    if (earlier.length === 0) return
    this.#faults.push(...earlier)
    this.#faults.sort((left, right) => left.line - right.line)
    this.#faults.length = Math.min(this.#faults.length, limits.ingestFaultsMax)
  }

  #errors(named: boolean): IngestSummary['errors'] {
    return this.#faults.map(({ line, agent, refusal }) => ({
      line,
      ...(named && agent !== '' ? { agent } : {}),
      code: refusal.code,
      detail: refusal.detail,
    }))
  }
}

function joinRow(row: AgentIngested, more: AgentIngested): void {
  row.accepted += more.accepted
  row.rejected += more.rejected
  if (more.lastSeq < 0) return
  if (row.firstSeq < 0) row.firstSeq = more.firstSeq
  row.lastSeq = more.lastSeq
  row.chainHead = more.chainHead
}

function reached(
  row: AgentIngested | undefined,
): Pick<IngestSummary, 'first_seq' | 'last_seq' | 'chain_head'> {
  if (row === undefined || row.lastSeq < 0) return { first_seq: null, last_seq: null, chain_head: null }
  return { first_seq: row.firstSeq, last_seq: row.lastSeq, chain_head: row.chainHead }
}
