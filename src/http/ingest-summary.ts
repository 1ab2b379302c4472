import { limits } from '../base/limits.js'
import {
  namesAgents,
  type AgentIngested,
  type IngestedOutcome,
  type LineFault,
} from '../protocol/messages.js'
import type { IngestManySummary, IngestSummary } from '../wire/ingest.js'

/** Adds up what became of the chunks of one ingest stream. */
export class IngestTotals {
  readonly #agents = new Map<string, AgentIngested>()
  #faults: LineFault[] = []
  #accepted = 0
  #rejected = 0
  /** True while every chunk was answered from before, under the same Idempotency-Key. */
  #replayed: boolean | undefined

  get accepted(): number {
    return this.#accepted
  }

  get rejected(): number {
    return this.#rejected
  }

  get replayed(): boolean {
    return this.#replayed === true
  }

  add(outcome: IngestedOutcome): void {
    this.#accepted += outcome.accepted
    this.#rejected += outcome.rejected
    const kept = namesAgents(outcome) || outcome.replayed === true
    if (kept) this.#replayed = (this.#replayed ?? true) && outcome.replayed === true
    for (const row of outcome.agents) this.#addAgent(row)
    this.#addFaults(outcome.faults)
  }

  /** Adds a line that no shard saw. */
  addFault(fault: LineFault): void {
    this.#rejected++
    this.#addFaults([fault])
  }

  /** Every good line is taken back: one of the others was bad, and it was all or none. */
  nothingWritten(): void {
    this.#accepted = 0
    for (const row of this.#agents.values()) row.accepted = 0
  }

  /** The summary of an ingest into one agent. */
  one(agent: string): IngestSummary {
    const row = this.#agents.get(agent)
    return { ...this.#counts(), errors: this.#errors(false), ...reached(row) }
  }

  /** The summary of an ingest into many, by name: shards answer in any order, and a repetition is answered the same. */
  many(): IngestManySummary {
    const agents: IngestManySummary['agents'] = {}
    const rows = [...this.#agents].sort(([left], [right]) => (left < right ? -1 : 1))
    for (const [name, row] of rows) {
      if (name !== '') agents[name] = { accepted: row.accepted, rejected: row.rejected, ...reached(row) }
    }
    return { ...this.#counts(), errors: this.#errors(true), agents }
  }

  #counts(): { accepted: number; rejected: number } {
    return { accepted: this.#accepted, rejected: this.#rejected }
  }

  #addAgent(row: AgentIngested): void {
    const before = this.#agents.get(row.agent)
    if (before === undefined) {
      this.#agents.set(row.agent, { ...row })
      return
    }
    before.accepted += row.accepted
    before.rejected += row.rejected
    if (row.lastSeq < 0) return
    if (before.firstSeq < 0) before.firstSeq = row.firstSeq
    before.lastSeq = row.lastSeq
    before.chainHead = row.chainHead
  }

  /** The first faults of the stream by line; chunks of several shards answer in any order. */
  #addFaults(faults: readonly LineFault[]): void {
    this.#faults.push(...faults)
    this.#faults.sort((left, right) => left.line - right.line)
    this.#faults = this.#faults.slice(0, limits.ingestFaultsMax)
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

function reached(
  row: AgentIngested | undefined,
): Pick<IngestSummary, 'first_seq' | 'last_seq' | 'chain_head'> {
  if (row === undefined || row.lastSeq < 0) return { first_seq: null, last_seq: null, chain_head: null }
  return { first_seq: row.firstSeq, last_seq: row.lastSeq, chain_head: row.chainHead }
}
