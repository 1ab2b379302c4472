import type { Refusal } from '../../../src/base/errors.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { AgentIngested, IngestedOutcome, LineFault } from '../../../src/protocol/record-messages.js'
import type { PendingRecord } from '../../store/write-set.js'

/** A line as reported in faults. */
interface NamedLine {
  line: number
  agent: string
}

/** Counts the results of lines, by agent. */
export class Tally {
  readonly #agents = new Map<string, AgentIngested>()
  readonly #faults: LineFault[] = []
  readonly #byCode: Record<string, number> = {}
  #accepted = 0
  #rejected = 0
  #kept = 0
  #duplicates = 0
  #written = 0

  /** Valid lines, whether they were written or only checked. */
  get accepted(): number {
    return this.#accepted
  }

  get written(): number {
    return this.#written
  }

  /** Counts a line that was written earlier; with a refusal, a refused line that was kept earlier. */
  duplicate(line: NamedLine, refusal?: Refusal): void {
    if (refusal === undefined) {
      this.count(line.agent)
      this.#duplicates++
    } else {
      this.#kept++
      this.reject(line, refusal)
    }
  }

  /** Refused lines that were kept. */
  get kept(): number {
    return this.#kept
  }

  accept(agent: string, record: PendingRecord): void {
    this.reach(agent, record)
    this.count(agent)
  }

  /** Counts a refused line that is kept as a record. */
  keep(line: NamedLine, refusal: Refusal, record: PendingRecord): void {
    this.reach(line.agent, record)
    this.#kept++
    this.reject(line, refusal)
  }

  /** Counts a written record: of an accepted line, or a part of a kept line. */
  reach(agent: string, record: PendingRecord): void {
    this.#written++
    const row = this.#row(agent)
    if (row.firstSeq < 0) row.firstSeq = record.seq
    row.lastSeq = record.seq
    row.chainHead = record.hash
  }

  /** Counts a valid line that is not written. */
  count(agent: string): void {
    this.#row(agent).accepted++
    this.#accepted++
  }

  reject({ line, agent }: NamedLine, refusal: Refusal): void {
    this.#row(agent).rejected++
    this.#rejected++
    this.#byCode[refusal.code] = (this.#byCode[refusal.code] ?? 0) + 1
    if (this.#faults.length < limits.ingestFaultsMax) this.#faults.push({ line, agent, refusal })
  }

  outcome(): IngestedOutcome {
    return {
      kind: 'ingested',
      accepted: this.#accepted,
      rejected: this.#rejected,
      ...(this.#rejected > 0 && { rejectedByCode: this.#byCode }),
      ...(this.#kept > 0 && { kept: this.#kept }),
      ...(this.#duplicates > 0 && { duplicates: this.#duplicates }),
      faults: this.#faults,
      agents: [...this.#agents.values()],
    }
  }

  #row(agent: string): AgentIngested {
    let row = this.#agents.get(agent)
    if (row === undefined) {
      row = { agent, accepted: 0, rejected: 0, firstSeq: -1, lastSeq: -1, chainHead: '' }
      this.#agents.set(agent, row)
    }
    return row
  }
}
