import { isDeepStrictEqual } from 'node:util'
import { asBuffer } from '../../../src/base/bytes.js'
import type { AgentRow } from '../tables/agent.js'
import type { CheckedTable } from '../tables/checked-table.js'
import type { Environment } from '../environment.js'
import { edgeAt, edgeRowCounts } from '../tables/edges.js'
import { findProposal, openProposalCount } from '../tables/proposals.js'
import type { StoredRecord } from '../tables/record-codec.js'
import { recordBySeq } from '../tables/records.js'
import { mutationKey, runKey } from '../tables/tables.js'

export interface CheckedAgent {
  name: string
  row: AgentRow
}

/** The members of all bodies of system records that the check reads. */
interface Members {
  zone?: unknown
  created_at_ms?: unknown
  policies?: unknown
  target?: unknown
  target_seq?: unknown
  src?: unknown
  dst?: unknown
  edge_type?: unknown
  weight?: unknown
  proposal_seq?: unknown
  state?: unknown
}

/** Checks that the rows of one agent match its records exactly. */
export class StrandEffects {
  readonly #environment: Environment
  readonly #agent: CheckedAgent
  #zone: unknown
  #policies: unknown = []
  #mutations = 0
  #erased = 0
  /** Erased records that were written here. Those of an import need no record of their erasure. */
  #erasedHere = 0
  #erasures = 0
  #zones = 0
  #edgeChanges = 0
  #proposals = 0
  #applied = 0

  constructor(environment: Environment, agent: CheckedAgent) {
    this.#environment = environment
    this.#agent = agent
  }

  /**
   * Checks the rows of the next record, whose link in the chain is valid.
   * @returns what is wrong with them
   */
  take(record: StoredRecord): string | undefined {
    const isImported = this.#isImported(record.seq)
    if (record.erased === true) this.#erased += 1
    if (record.erased === true && !isImported) this.#erasedHere += 1
    switch (record.type) {
      case 'sys/genesis':
        return this.#genesis(membersOf(record))
      case 'sys/tombstone':
      case 'sys/restore':
        return this.#mutation(record, membersOf(record))
      case 'sys/erase':
        return this.#erasure(membersOf(record))
      case 'sys/zone':
        return this.#zoneChange(record, membersOf(record))
      case 'sys/policy':
        if (isImported) return undefined
        this.#policies = membersOf(record).policies
        return undefined
      case 'edge/add':
      case 'edge/remove':
        return this.#edge(record, membersOf(record))
      case 'sys/proposal':
        if (isImported) return undefined
        this.#proposals += 1
        return findProposal(this.#environment, record)?.hash === record.hash
          ? undefined
          : 'The row of the proposal is missing or does not match the record'
      case 'sys/applied':
        if (isImported) return undefined
        return this.#end(membersOf(record))
      default:
        return undefined
    }
  }

  /** Compares the agent's row counts and current state with its records. Call it after the last record. */
  *end(): Generator<string> {
    const { row } = this.#agent
    const { mutations, erasures, zoneChanges, proposals } = this.#environment
    if (row.zone !== this.#zone) yield `The zone is ${row.zone}, which does not match the records`
    if (!isDeepStrictEqual(row.policies ?? [], this.#policies)) {
      yield 'The policies do not match the records'
    }
    const mutationRows = { start: mutationKey(row.no, 0, 0), end: mutationKey(row.no + 1, 0, 0) }
    yield* differs('mutations', mutations.getKeysCount(mutationRows), this.#mutations)
    yield* differs('erasures', this.#rows(erasures), this.#erased)
    yield* differs('erased records', this.#erasedHere, this.#erasures)
    yield* differs('zone changes', this.#rows(zoneChanges), this.#zones)
    yield* differs('proposals', this.#rows(proposals, row.importedRecords), this.#proposals)
    const open = openProposalCount(this.#environment, row.no)
    yield* differs('open proposals', open, this.#proposals - this.#applied)
    const { edges, history } = edgeRowCounts(this.#environment, row.no)
    yield* differs('edge changes', edges + history, this.#edgeChanges)
  }

  #rows(table: CheckedTable, fromSeq = 0): number {
    const { no } = this.#agent.row
    return table.getKeysCount({ start: runKey(no, fromSeq), end: runKey(no + 1, 0) })
  }

  /** Whether a record was imported: then proposals and policies have no rows. */
  #isImported(seq: number): boolean {
    const { importing, importedRecords = 0 } = this.#agent.row
    return importing === true || seq < importedRecords
  }

  #genesis({ zone, created_at_ms: createdAtMs }: Members): string | undefined {
    this.#zone = zone
    return createdAtMs === this.#agent.row.createdAtMs
      ? undefined
      : 'The creation time of the agent does not match its genesis record'
  }

  #mutation({ type, seq }: StoredRecord, { target, target_seq: targetSeq }: Members): string | undefined {
    this.#mutations += 1
    const { no } = this.#agent.row
    if (typeof targetSeq !== 'number') return 'The record names no target'
    if (recordBySeq(this.#environment, no, targetSeq)?.hash !== target) return 'The target is another record'
    const stored = this.#environment.mutations.get(mutationKey(no, targetSeq, seq))?.[0]
    const expected = type === 'sys/tombstone' ? 1 : 0
    return stored === expected ? undefined : 'The row of the mutation does not match the record'
  }

  #erasure({ target, target_seq: targetSeq }: Members): string | undefined {
    if (typeof targetSeq !== 'number') return 'The record names no target'
    if (!this.#isImported(targetSeq)) this.#erasures += 1
    const record = recordBySeq(this.#environment, this.#agent.row.no, targetSeq)
    if (record === undefined || record.hash !== target) return 'The target is another record'
    return record.erased === true ? undefined : 'The target is not erased'
  }

  #zoneChange({ seq }: StoredRecord, { zone }: Members): string | undefined {
    this.#zones += 1
    this.#zone = zone
    const stored = this.#environment.zoneChanges.get(runKey(this.#agent.row.no, seq))?.toString()
    return stored === zone ? undefined : 'The row of the zone change does not match the record'
  }

  #edge(record: StoredRecord, { src, dst, edge_type: edgeType, weight = 0 }: Members): string | undefined {
    this.#edgeChanges += 1
    if (typeof dst !== 'string' || typeof edgeType !== 'string') return 'The record names no edge'
    if (src !== this.#agent.name) return 'The edge belongs to another agent'
    const stored = edgeAt(this.#environment, { agentNo: this.#agent.row.no, edgeType, dst }, record.hlc)
    const live = record.type === 'edge/add'
    return stored?.seq === record.seq && stored.live === live && stored.weight === weight
      ? undefined
      : 'The row of the edge does not match the record'
  }

  #end({ proposal_seq: seq, state }: Members): string | undefined {
    this.#applied += 1
    if (typeof seq !== 'number') return 'The record names no proposal'
    const stored = findProposal(this.#environment, { agentNo: this.#agent.row.no, seq })
    return stored?.state === state ? undefined : 'The row of the proposal does not match how it ended'
  }
}

function* differs(rows: string, stored: number, expected: number): Generator<string> {
  if (stored !== expected) yield `The tables have ${stored} ${rows}, but the records have ${expected}`
}

function membersOf({ body }: StoredRecord): Members {
  const value: unknown = JSON.parse(asBuffer(body).toString('utf8'))
  return typeof value === 'object' && value !== null ? value : {}
}
