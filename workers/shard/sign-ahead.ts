import { agentSeed, keyPairFromSeed } from '../../src/strand/keys.js'
import { genesisBody } from '../../src/strand/genesis.js'
import { compareHlc, HlcClock, type Hlc } from '../../src/strand/hlc.js'
import { zeroHash } from '../../src/strand/header.js'
import { genesisType } from '../../src/strand/record-type.js'
import { chainRecord, type ChainedRecord, type CommitGroup, type Draft } from './commit-group.js'
import { findAgent, type ShardState, type Steps, type Turn } from './state.js'
import type { Agent } from '../store/tables/agent.js'

/** With more records than this, what is written in one group is chained and signed before that, in turns. */
export const signedAtOnceMax = 512

/** The genesis record of a new agent, made before the agent. */
export interface AgentAhead {
  createdAtMs: number
  keyPair: Agent['keyPair']
  genesis: ChainedRecord
}

/** Records that are chained and signed, and not yet in any group. */
export interface Ahead {
  first: Hlc
  records: Map<Draft, ChainedRecord>
  newAgents: Map<string, AgentAhead>
  /** The heads that they were chained to; undefined for agents that did not exist. */
  heads: Map<string, string | undefined>
}

/** How far ahead of the clock the readings of each try lie: milliseconds, and milliseconds for each record. */
const tries = [
  { ms: 0, perRecordMs: 0 },
  { ms: 250, perRecordMs: 0.2 },
  { ms: 1_000, perRecordMs: 0.8 },
]

/**
 * Chains and signs drafts in turns, which is most of the work of a write, so that their group takes little time. Clock
 * readings must never fall within a shard's log, so what others write meanwhile has to get earlier readings. The first
 * try takes the next readings, which works if nobody else writes. Later tries take readings a little ahead of the
 * clock, and writes to the same agents wait.
 * @returns undefined when the clock readings of others have passed them: they are then signed when they are written
 */
export function* signAhead(
  state: ShardState,
  drafts: readonly { agent: string; draft: Draft }[],
  turn: Turn,
): Steps<Ahead | undefined> {
  try {
    for (const { ms, perRecordMs } of tries) {
      const ahead = yield* signFrom(state, { drafts, aheadMs: ms + perRecordMs * drafts.length }, turn)
      if (ahead !== undefined && isGood(state, ahead, turn.group)) return ahead
      for (const { agent } of drafts) turn.held.add(agent)
    }
    return undefined
  } finally {
    turn.held.clear()
  }
}

/** Whether the chained records still follow the heads of their strands and the clock. */
export function isGood(state: ShardState, { first, heads }: Ahead, group: CommitGroup): boolean {
  if (compareHlc(group.lastReading, first) >= 0) return false
  for (const [name, head] of heads) if (findAgent(state, group, name)?.head.hash !== head) return false
  return true
}

function* signFrom(
  state: ShardState,
  { drafts, aheadMs }: { drafts: readonly { agent: string; draft: Draft }[]; aheadMs: number },
  turn: Turn,
): Steps<Ahead | undefined> {
  const nowMs = Math.floor(state.clock() + aheadMs)
  const clock = new HlcClock(() => nowMs, turn.group.lastReading)
  const first = clock.peek()
  if (first === undefined) return undefined
  const ahead: Ahead = { first, records: new Map(), newAgents: new Map(), heads: new Map() }
  const strands = new Map<string, Strand>()
  for (const { agent, draft } of drafts) {
    const strand = strands.get(agent) ?? openStrand(state, { agent, clock, ahead }, turn.group)
    if (strand === undefined) return undefined
    strands.set(agent, strand)
    const hlc = clock.next()
    if (hlc === undefined) return undefined
    const record = chainRecord(strand, { draft, hlc, salt: state.random(16) })
    ahead.records.set(draft, record)
    strand.head = record
    if (!turn.spent()) continue
    yield
    if (!isGood(state, ahead, turn.group)) return undefined
  }
  return ahead
}

/** A strand with the records that are signed ahead. */
type Strand = Pick<Agent, 'publicKey' | 'strand' | 'keyPair'> & { head: { seq: number; hash: string } }

function openStrand(
  state: ShardState,
  { agent: name, clock, ahead }: { agent: string; clock: HlcClock; ahead: Ahead },
  group: CommitGroup,
): Strand | undefined {
  const found = findAgent(state, group, name)
  // An agent that is being imported cannot sign.
  if (found?.importing === true) return undefined
  ahead.heads.set(name, found?.head.hash)
  if (found !== undefined) {
    const { publicKey, strand, keyPair, head } = found
    return { publicKey, strand, keyPair, head }
  }
  const keyPair = keyPairFromSeed(agentSeed(state.masterSeed, name))
  const { publicKey } = keyPair
  const createdAtMs = state.clock()
  const body = Buffer.from(genesisBody({ agent: name, createdAtMs, publicKey, zone: 'governed' }))
  const strand: Strand = { publicKey, strand: zeroHash, keyPair, head: { seq: -1, hash: '' } }
  const hlc = clock.next() ?? ahead.first
  const draft: Draft = { type: genesisType, body, signing: 'record' }
  const genesis = chainRecord(strand, { draft, hlc, salt: state.random(16) })
  ahead.newAgents.set(name, { createdAtMs, keyPair, genesis })
  return { ...strand, strand: genesis.hash, head: genesis }
}
