import type { AgentAhead } from '../../shard/new-agent.js'
import { agentSeed, keyPairFromSeed } from '../../../src/strand/keys.js'
import { genesisBody } from '../../../src/strand/genesis.js'
import { compareHlc, HlcClock, type Hlc } from '../../../src/strand/hlc.js'
import { zeroHash } from '../../../src/strand/header.js'
import { genesisType } from '../../../src/strand/record-type.js'
import { chainRecord, type ChainedRecord, type CommitGroup, type Draft } from '../../shard/commit-group.js'
import { findAgent, type ShardState, type Steps, type Turn } from '../../shard/state.js'
import type { Agent } from '../../store/tables/agent.js'

/** Writes of more records than this in one group are chained and signed in turns before the group. */
export const signedInOneGroupMax = 512

/** Records that are chained and signed but not yet in a commit group. */
export interface SignedAhead {
  first: Hlc
  records: Map<Draft, ChainedRecord>
  newAgents: Map<string, AgentAhead>
  /** The heads to which the records are chained, by agent; undefined for an agent that did not exist. */
  heads: Map<string, string | undefined>
}

/** How far the clock readings of each try are ahead of the clock: a constant, plus a time for each record. */
const tries = [
  { ms: 0, perRecordMs: 0 },
  { ms: 250, perRecordMs: 0.2 },
  { ms: 1_000, perRecordMs: 0.8 },
]

/**
 * Chains and signs drafts over several turns, so that the commit group itself takes little time. Clock
 * readings increase in a shard's log, so concurrent writes must get earlier readings. The first try uses the
 * next readings, which works if there are no concurrent writes. Later tries use readings slightly ahead of
 * the clock, and writes to the same agents wait.
 * @returns undefined if concurrent writes have passed these readings; the records are then signed when they
 * are written
 */
export function* signAhead(
  state: ShardState,
  drafts: readonly { agent: string; draft: Draft }[],
  turn: Turn,
): Steps<SignedAhead | undefined> {
  try {
    for (const { ms, perRecordMs } of tries) {
      const ahead = yield* signFrom(state, { drafts, aheadMs: ms + perRecordMs * drafts.length }, turn)
      if (ahead !== undefined && isStillValid(state, ahead, turn.group)) return ahead
      for (const { agent } of drafts) turn.held.add(agent)
    }
    return undefined
  } finally {
    turn.held.clear()
  }
}

/** Whether the chained records still follow the heads of their strands and the latest clock reading. */
export function isStillValid(state: ShardState, { first, heads }: SignedAhead, group: CommitGroup): boolean {
  if (compareHlc(group.lastReading, first) >= 0) return false
  for (const [name, head] of heads) if (findAgent(state, group, name)?.head.hash !== head) return false
  return true
}

function* signFrom(
  state: ShardState,
  { drafts, aheadMs }: { drafts: readonly { agent: string; draft: Draft }[]; aheadMs: number },
  turn: Turn,
): Steps<SignedAhead | undefined> {
  const nowMs = Math.floor(state.clock() + aheadMs)
  const clock = new HlcClock(() => nowMs, turn.group.lastReading)
  const first = clock.peek()
  if (first === undefined) return undefined
  const ahead: SignedAhead = { first, records: new Map(), newAgents: new Map(), heads: new Map() }
  const strands = new Map<string, Strand>()
  for (const { agent, draft } of drafts) {
    const strand = strands.get(agent) ?? strandOf(state, { agent, clock, ahead }, turn.group)
    if (strand === undefined) return undefined
    strands.set(agent, strand)
    const hlc = clock.next()
    if (hlc === undefined) return undefined
    const record = chainRecord(strand, { draft, hlc, salt: state.random(16) })
    ahead.records.set(draft, record)
    strand.head = record
    if (!turn.spent()) continue
    yield
    if (!isStillValid(state, ahead, turn.group)) return undefined
  }
  return ahead
}

type Strand = Pick<Agent, 'publicKey' | 'strand' | 'keyPair'> & { head: { seq: number; hash: string } }

function strandOf(
  state: ShardState,
  { agent: name, clock, ahead }: { agent: string; clock: HlcClock; ahead: SignedAhead },
  group: CommitGroup,
): Strand | undefined {
  const found = findAgent(state, group, name)
  // The server has no secret key for an agent that is being imported.
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
