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
import { allHeads, changedHeads, type ChangedHead } from '../store/tables/changed-heads.js'
import { recordBySeq } from '../store/tables/records.js'
import { makeAgent } from '../shard/new-agent.js'
import type { FeatureCommands } from '../shard/command-table.js'
import { loggedHeads } from '../store/tables/logged-heads.js'

/** The log of strand heads. */
export const serverLogCommands = {
  writes: {
    logOpen: { decide: logOpen },
    logAppend: { decide: logAppend },
  },
  reads: {
    headsMoved: { answer: headsMoved },
    headsAll: { answer: headsAll },
    headsCheck: { answer: headsCheck },
    logHeads: { answer: logHeads },
    logFind: { answer: logFind },
  },
} satisfies FeatureCommands

/** A page of this shard's heads that moved after a clock reading, without the head of the server log. */
function headsMoved(state: ShardState, { after }: CommandOf<'headsMoved'>): Outcome {
  const { heads, reached, end, damagedAfter } = changedHeads(state.store.environment, after)
  const damage = damagedAfter === undefined ? {} : { damagedAfter }
  return { kind: 'heads', heads: agentHeads(state, heads), reached, nextNo: 0, end, ...damage }
}

/** A page of this shard's heads by agent number. */
function headsAll(state: ShardState, { fromNo }: CommandOf<'headsAll'>): Outcome {
  const { heads, nextNo } = allHeads(state.store.environment, fromNo)
  const end = nextNo === fromNo
  return { kind: 'heads', heads: agentHeads(state, heads), reached: state.store.lastHlc, nextNo, end }
}

function agentHeads({ store: { agents } }: ShardState, heads: ChangedHead[]): AgentHead[] {
  return heads.flatMap(({ agentNo, seq, hash }) => {
    const { name, strand } = agents.identityOf(agentNo)
    return name === logAgent ? [] : [{ agent: name, strand, size: seq + 1, hash }]
  })
}

/** Checks that the strands of this shard contain the heads that were logged. */
function headsCheck({ store }: ShardState, { heads }: CommandOf<'headsCheck'>): Outcome {
  const forked = heads.filter(({ agent: name, strand, size, hash }) => {
    const agent = store.agents.find(name)
    if (agent === undefined || agent.strand !== strand || agent.head.seq < size - 1) return true
    return recordBySeq(store.environment, agent.no, size - 1)?.hash !== hash
  })
  return { kind: 'headsChecked', forked: forked.map(({ strand }) => strand) }
}

/** The newest logged heads of some strands. */
function logHeads({ store }: ShardState, { strands }: CommandOf<'logHeads'>): Outcome {
  const logged = store.tables.of(loggedHeads)
  const heads = strands.flatMap((strand) => logged.newest(strand)?.head ?? [])
  return { kind: 'logHeads', heads }
}

/**
 * Creates the agent of the server log if it does not exist, and indexes some of the records that are not yet
 * indexed, as after a move to other shards. 503 clock_skew, 409 agent_exists if another agent has the name.
 */
function logOpen(state: ShardState, command: CommandOf<'logOpen'>, group: CommitGroup): Decision {
  const agent = findAgent(state, group, command.agent) ?? newLog(state, command.agent, group)
  if ('code' in agent) return agent
  if (agent.zone !== 'immutable_core') {
    return refuse('agent_exists', `The name "${command.agent}" of the server log is taken by another agent`)
  }
  const first = state.store.tables.of(loggedHeads).lastIndexed + 1
  const last = Math.min(agent.head.seq, first + limits.logIndexRecords - 1)
  for (let seq = first; seq <= last; seq++)
    group.changes.of(loggedHeads).set(seq, recordOfLog(state, agent, seq)?.heads ?? [])
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
  const parsed = readHeads(asBuffer(record.body).toString('utf8'))
  return parsed && { heads: parsed.heads, clocks: parsed.clocks.flatMap((text) => parseHlc(text) ?? []) }
}

/**
 * Appends heads to the server log in one commit. A head that is not newer than the last logged head of its
 * strand is left out, so that the logged sizes of a strand only grow. 503 clock_skew.
 */
function logAppend(state: ShardState, command: CommandOf<'logAppend'>, group: CommitGroup): Decision {
  const agent = findAgent(state, group, command.agent)
  if (agent === undefined) return refuse('agent_not_found', 'The server log does not exist yet')
  const { heads, forked } = newHeads(state, command.heads)
  const parts = Math.ceil(heads.length / limits.logRecordHeadsMax)
  const skew = group.reserve(parts)
  if (skew !== undefined) return skew
  for (let part = 0; part < parts; part++) {
    const logged = heads.slice(part * limits.logRecordHeadsMax, (part + 1) * limits.logRecordHeadsMax)
    const body = Buffer.from(headsBody({ clocks: command.clocks, heads: logged }))
    const record = group.append(agent, { type: headsType, body, signing: 'record' })
    assert(!('code' in record), 'the clock reading of a log record was reserved')
    group.changes.of(loggedHeads).set(record.seq, logged)
  }
  const size = agent.head.seq + 1
  return () => ({ kind: 'logAppended', size, forked })
}

function newHeads(
  { store }: ShardState,
  found: readonly LoggedHead[],
): { heads: LoggedHead[]; forked: string[] } {
  const forked: string[] = []
  const index = store.tables.of(loggedHeads)
  const heads = found.filter((head) => {
    const logged = index.newest(head.strand)?.head
    if (logged?.size === head.size && logged.hash !== head.hash) forked.push(head.strand)
    return logged === undefined || logged.size < head.size
  })
  return { heads, forked }
}

/** The newest head of a strand among the first `size` records of the log; 404 head_not_logged. */
function logFind(state: ShardState, { strand, size }: CommandOf<'logFind'>): Outcome {
  const found = state.store.tables.of(loggedHeads).newest(strand, size)
  if (found === undefined) {
    return refuse('head_not_logged', 'The server log has no head of this strand yet')
  }
  return { kind: 'headLogged', ...found }
}
