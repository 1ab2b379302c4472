import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import type { PageCursor, RecordQuery } from '../../src/protocol/record-messages.js'
import { compareAll, type Effort } from '../../src/strand/condition.js'
import { compareHlc, type Hlc } from '../../src/strand/hlc.js'
import { isSelectedType } from '../../src/strand/record-type.js'
import { TextBuffer } from '../../src/base/text-buffer.js'
import { addRecordRow } from '../../src/wire/render.js'
import { PageBudget, agentToRead, covers, grantOf, isRefused } from '../mutations/row-access.js'
import { type ShardState } from '../shard/state.js'
import { publicKeyOf } from '../store/tables/agents.js'
import type { Agent } from '../store/tables/agent.js'
import type { StoredRecord } from '../store/tables/record-codec.js'
import { recordsFrom, seqAtOrAfter } from '../store/tables/records.js'
import type { FeatureCommands } from '../shard/command-table.js'
import { isDeleted } from '../store/tables/mutations.js'

/** Queries of one agent. */
export const queryCommands = {
  reads: {
    recordQuery: { answer: recordQuery, isForCallerAlone: true },
  },
} satisfies FeatureCommands

/** Bytes for the rows of a usual page. */
const ROWS_BYTES = 16_384

/** The inclusive range of seqs of a query, and the seq as of which it reads the strand. */
interface SeqBounds {
  lowSeq: number
  highSeq: number
  asOfSeq: number
}

/**
 * A page of a query; it ends early, with a cursor, when its budget is used up. Row policies are checked
 * before the conditions of the query.
 */
function recordQuery(state: ShardState, command: CommandOf<'recordQuery'>): Outcome {
  const agent = agentToRead(state, command)
  if ('code' in agent) return agent
  const grant = grantOf(agent, 'read', command.access)
  if (isRefused(grant)) return grant
  const bounds = boundsOf(state, agent, command)
  const fromSeq = command.cursor?.nextSeq ?? (command.order === 'asc' ? bounds.lowSeq : bounds.highSeq)
  const rows = new TextBuffer(ROWS_BYTES)
  let count = 0
  const budget = new PageBudget()
  const mismatched = new Set<number>()
  const bytesMax = command.bytesMax ?? limits.pageBytesMax
  const outcome = (cursor?: PageCursor): Outcome => ({
    kind: 'rows',
    rows: rows.bytes,
    count,
    ...(cursor !== undefined && { cursor }),
    ...(mismatched.size > 0 && { mismatched: [...mismatched] }),
  })
  for (const record of walk(state, agent, { fromSeq, order: command.order, bounds })) {
    const isFull = count >= command.limit || rows.length >= bytesMax
    if (isFull || budget.spent) return outcome({ nextSeq: record.seq, asOfSeq: bounds.asOfSeq })
    budget.read(record.body.length)
    // An erased record has no content; it can still be read by its hash.
    if (record.erased === true || !covers(grant, record, budget.effort)) continue
    const found = selects(command, record, budget.effort)
    if (found === false || (found !== true && mismatched.has(found))) continue
    if (isDeleted(state.store.environment, agent, { seq: record.seq, asOfSeq: bounds.asOfSeq })) continue
    if (found !== true) {
      mismatched.add(found)
      continue
    }
    addRecordRow(rows, record, publicKeyOf(agent, record.keyIndex))
    count += 1
  }
  return outcome()
}

function* walk(
  state: ShardState,
  agent: Agent,
  { fromSeq, order, bounds }: { fromSeq: number; order: 'asc' | 'desc'; bounds: SeqBounds },
): Generator<StoredRecord> {
  if (fromSeq < bounds.lowSeq || fromSeq > bounds.highSeq) return
  for (const record of recordsFrom(state.store.environment, agent.no, { fromSeq, order })) {
    if (record.seq < bounds.lowSeq || record.seq > bounds.highSeq) return
    yield record
  }
}

function boundsOf(state: ShardState, agent: Agent, command: CommandOf<'recordQuery'>): SeqBounds {
  const { environment } = state.store
  const lowSeq = command.from === undefined ? 0 : seqAtOrAfter(environment, agent.no, command.from)
  const asOfSeq = asOf(state, agent, command)
  return { lowSeq, highSeq: asOfSeq, asOfSeq }
}

/** The seq as of which a page reads the strand; later pages use that of the first page. */
function asOf(
  state: ShardState,
  agent: Agent,
  command: { cursor?: PageCursor } & CommandOf<'recordQuery'>,
): number {
  if (command.cursor !== undefined) return Math.min(command.cursor.asOfSeq, agent.head.seq)
  return command.to === undefined ? agent.head.seq : lastSeqAt(state, agent, command.to)
}

/** The seq of the last record at or before `moment`; -1 if all records are later. */
export function lastSeqAt(state: ShardState, agent: Agent, moment: Hlc): number {
  if (compareHlc(agent.head.hlc, moment) <= 0) return agent.head.seq
  const { ms, counter } = moment
  return seqAtOrAfter(state.store.environment, agent.no, { ms, counter: counter + 1 }) - 1
}

/**
 * Whether a record that the caller may read matches the query; or the index of a condition that compares a
 * number with a text, and so cannot match.
 */
function selects(
  { types, where }: RecordQuery,
  { type, body }: StoredRecord,
  effort: Effort,
): boolean | number {
  if (!isSelectedType(type, types)) return false
  return where === undefined || compareAll(body, where, effort)
}
