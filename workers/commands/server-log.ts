import { assert } from '../../src/base/assert.js'
import { asBuffer } from '../../src/base/bytes.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import { logAgent } from '../../src/strand/organism-id.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import type { AgentHead } from '../../src/protocol/server-log-messages.js'
import { readHeads } from '../../src/proof/heads.js'
import { parseHlc } from '../../src/strand/hlc.js'
import { headsType } from '../../src/strand/record-type.js'
import { headsBody, type HeadsRecord, type LoggedHead } from '../../src/strand/server-log.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { findAgent, type Decision, type ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import { allHeads, movedHeads, type MovedHead } from '../store/tables/moved-heads.js'
import { recordBySeq } from '../store/tables/records.js'
import { makeAgent } from './agents.js'

/** A page of this shard's heads that moved after a clock reading, without that of the log. */
export function headsMoved(state: ShardState, { after }: CommandOf<'headsMoved'>): Outcome {
  const { heads, reached, end, damagedAfter } = movedHeads(state.store.environment, after)
  const damage = damagedAfter === undefined ? {} : { damagedAfter }
  return { kind: 'heads', heads: named(state, heads), reached, nextNo: 0, end, ...damage }
}

/** A page of this shard's heads, by the numbers of their agents. */
export function headsAll(state: ShardState, { fromNo }: CommandOf<'headsAll'>): Outcome {
  const { heads, nextNo } = allHeads(state.store.environment, fromNo)
  const end = nextNo === fromNo
  return { kind: 'heads', heads: named(state, heads), reached: state.store.lastHlc, nextNo, end }
}

function named({ store: { agents } }: ShardState, heads: MovedHead[]): AgentHead[] {
  return heads.flatMap(({ agentNo, seq, hash }) => {
    const { name, strand } = agents.identityOf(agentNo)
    return name === logAgent ? [] : [{ agent: name, strand, size: seq + 1, hash }]
  })
}

/** Whether strands of this shard have the records that the log named. */
export function headsHold({ store }: ShardState, { heads }: CommandOf<'headsHold'>): Outcome {
  const forked = heads.filter(({ agent: name, strand, size, hash }) => {
    const agent = store.agents.find(name)
    if (agent === undefined || agent.strand !== strand || agent.head.seq < size - 1) return true
    return recordBySeq(store.environment, agent.no, size - 1)?.hash !== hash
  })
  return { kind: 'headsHeld', forked: forked.map(({ strand }) => strand) }
}

/** The last heads that the log names of some strands. */
export function logTold({ store: { loggedHeads } }: ShardState, { strands }: CommandOf<'logTold'>): Outcome {
  const heads = strands.flatMap((strand) => loggedHeads.newest(strand)?.head ?? [])
  return { kind: 'headsTold', heads }
}

/**
 * Makes the log's agent if it does not exist, and adds some records to the index that are missing in it, as after a
 * move to other shards. 503 clock_skew, 409 agent_exists where something else has that name.
 */
export function logOpen(state: ShardState, command: CommandOf<'logOpen'>, group: CommitGroup): Decision {
  const agent = findAgent(state, group, command.agent) ?? newLog(state, command.agent, group)
  if ('code' in agent) return agent
  if (agent.zone !== 'immutable_core') {
    return refuse('agent_exists', `Expected no agent of the name "${command.agent}" but the log's`)
  }
  const first = state.store.loggedHeads.lastIndexed + 1
  const last = Math.min(agent.head.seq, first + limits.logIndexRecords - 1)
  for (let seq = first; seq <= last; seq++)
    group.loggedHeads.set(seq, recordOfLog(state, agent, seq)?.heads ?? [])
  const clocks = agent.head.seq === 0 ? [] : (recordOfLog(state, agent, agent.head.seq)?.clocks ?? [])
  const size = agent.head.seq + 1
  return () => ({ kind: 'logOpened', size, clocks, left: last < size - 1 })
}

function newLog(state: ShardState, name: string, group: CommitGroup): Agent | Refusal {
  return makeAgent(state, { agent: name, zone: 'immutable_core' }, group)
}

function recordOfLog({ store }: ShardState, agent: Agent, seq: number): HeadsRecord | undefined {
  const record = recordBySeq(store.environment, agent.no, seq)
  assert(record !== undefined, 'a strand has no gaps')
  const told = readHeads(asBuffer(record.body).toString('utf8'))
  return told && { heads: told.heads, clocks: told.clocks.flatMap((text) => parseHlc(text) ?? []) }
}

/**
 * Appends heads to the log, all of them in one commit. A head that is not beyond the last one that the log names of its
 * strand is left out, so the sizes of a strand only rise in the log. 503 clock_skew.
 */
export function logAppend(state: ShardState, command: CommandOf<'logAppend'>, group: CommitGroup): Decision {
  const agent = findAgent(state, group, command.agent)
  if (agent === undefined) return refuse('agent_not_found', 'Expected a server log that was opened')
  const { heads, forked } = newHeads(state, command.heads)
  const parts = Math.ceil(heads.length / limits.logRecordHeadsMax)
  const skew = group.reserve(parts)
  if (skew !== undefined) return skew
  for (let part = 0; part < parts; part++) {
    const told = heads.slice(part * limits.logRecordHeadsMax, (part + 1) * limits.logRecordHeadsMax)
    const body = Buffer.from(headsBody({ clocks: command.clocks, heads: told }))
    const record = group.append(agent, { type: headsType, body, signing: 'record' })
    assert(!('code' in record), 'the place of a record of the log was reserved')
    group.loggedHeads.set(record.seq, told)
  }
  const size = agent.head.seq + 1
  return () => ({ kind: 'logAppended', size, forked })
}

function newHeads(
  { store: { loggedHeads } }: ShardState,
  found: readonly LoggedHead[],
): { heads: LoggedHead[]; forked: string[] } {
  const forked: string[] = []
  const heads = found.filter((head) => {
    const told = loggedHeads.newest(head.strand)?.head
    if (told?.size === head.size && told.hash !== head.hash) forked.push(head.strand)
    return told === undefined || told.size < head.size
  })
  return { heads, forked }
}

/** The newest head of a strand among the first `size` records of the log; 404 head_not_logged. */
export function logFind(state: ShardState, { strand, size }: CommandOf<'logFind'>): Outcome {
  const found = state.store.loggedHeads.newest(strand, size)
  if (found === undefined) {
    return refuse('head_not_logged', 'Expected a strand that the server log tells of')
  }
  return { kind: 'headLogged', ...found }
}
