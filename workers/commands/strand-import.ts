import { memberAddress, memberOrganism, reaches } from '../../src/auth/namespace.js'
import { assert } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import { authMember } from '../../src/strand/organism-id.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { compareHlc } from '../../src/strand/hlc.js'
import { keyPairFromSeed, agentSeed } from '../../src/strand/keys.js'
import { agentActions } from '../../src/strand/proposal.js'
import { seal } from '../../src/strand/seal.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { ImportJudge } from '../import/judge.js'
import { CheckedPart, rejectedAt } from '../import/part.js'
import { effectFault, applyEffect } from '../import/apply.js'
import { holdProposal, putProposal, openProposals } from '../mutations/pending.js'
import { findAgent, type Decision, type ShardState, type Steps, type Turn } from '../shard/state.js'
import { readAgentSeed, noKeyPair, seedContext } from '../store/tables/agents.js'
import type { Agent } from '../store/tables/agent.js'
import { openProposalCount } from '../store/tables/proposals.js'
import { recordBySeq } from '../store/tables/records.js'

/**
 * Imports a checked part of an export (docs/adr/0022-import.md). Records that exist are compared only by
 * their hashes. 409 agent_exists for another strand of that name, import_conflict if it does not continue the
 * strand; 403 for a strand that takes writes, unless the caller is an administrator; 422 import_rejected, 503
 * clock_skew.
 */
export function strandImport(
  state: ShardState,
  command: CommandOf<'strandImport'>,
  group: CommitGroup,
): Decision {
  return applyPart(state, { command, part: CheckedPart.of(command) }, group)
}

/** Whether a part is so large that it is read over several turns. */
export function isLargePart({ chunk, firstSeq, lastSeq }: CommandOf<'strandImport'>): boolean {
  return lastSeq - firstSeq >= limits.importChunkLines || chunk.length > limits.ingestAtomicBytesMax
}

/** Imports a large part as `strandImport` does, but reads it over several turns. */
export function* strandImportSteps(
  state: ShardState,
  command: CommandOf<'strandImport'>,
  turn: Turn,
): Steps<Decision> {
  const part = yield* CheckedPart.read(command, turn)
  return applyPart(state, { command, part }, turn.group)
}

/** Applies a whole part, or nothing. */
function applyPart(
  state: ShardState,
  { command, part }: { command: CommandOf<'strandImport'>; part: CheckedPart },
  group: CommitGroup,
): Decision {
  const found = findAgent(state, group, command.agent)
  if (found === undefined && isNamespaceAgent(command.agent)) return noNamespace
  const refusal =
    found === undefined
      ? part.firstSeq === 0
        ? undefined
        : gapRefusal(0, part.firstSeq)
      : connectionRefusal(state, { agent: found, part, strand: command.strand }, group)
  if (refusal !== undefined) return refusal
  part.dropUntil(found?.head.seq ?? -1)
  if (part.empty) return importedOutcome(found, 0)
  const judge = judgeOf(state, found, group)
  const { admin, agents } = command
  const partFault = edgeRefusal(part, agents) ?? partRefusal(state, { found, part, admin, judge }, group)
  if (partFault !== undefined) return partFault
  if (!command.audited) return notAudited
  const agent = found ?? newAgent(state, { command, part }, group)
  if (!agent.importing) stopWrites(state, agent, group)
  for (const record of part.records) {
    const keyIndex = agent.retiredKeys.length
    const strandBytes = agent.strandBytes + (record.erased === true ? 0 : record.body.length)
    const commitment = part.commitmentOf(record.seq)
    const own = { agentNo: agent.no, keyIndex, agent, strandBytes }
    group.appendImported(
      Object.assign(record, { imported: true as const, ...own }, commitment && { commitment }),
    )
    const effect = part.effectOf(record.seq)
    const unsure = judge?.unverified.has(record.seq) === true
    if (effect !== undefined) applyEffect(state, { agent, record, effect, unsure }, group)
  }
  if (judge !== undefined) updateOwedErasures(agent, part, group)
  assert(agent.head.signature !== '', 'a part ends with a signed record')
  return importedOutcome(agent, part.records.length)
}

/**
 * Ends an import, so that the agent takes writes, unless more parts will follow or the strand already has
 * more records. 422 import_rejected if the seed of its key is unknown.
 */
export function strandImportEnd(
  state: ShardState,
  command: CommandOf<'strandImportEnd'>,
  group: CommitGroup,
): Decision {
  const agent = findAgent(state, group, command.agent)
  if (agent === undefined || agent.strand !== command.strand) return otherStrand(command.agent)
  if (!agent.importing || command.hold || agent.head.seq > command.lastSeq) return importedOutcome(agent, 0)
  const { masterSeed, random } = state
  const sealedSeed = state.store.agents.row(agent.name)?.sealedSeed
  const derived = agentSeed(masterSeed, agent.name)
  const seeds = [command.seed, readAgentSeed(masterSeed, agent.name, sealedSeed), derived]
  const seed = seeds.find((one) => one !== undefined && keyPairFromSeed(one).publicKey === agent.publicKey)
  if (seed === undefined) {
    return refuse(
      'import_rejected',
      `The seed of the key ${agent.publicKey} is not on this server: the agent does not accept writes until an import sends the seed`,
      { extra: { public_key: agent.publicKey } },
    )
  }
  const [owed] = agent.owedErasures
  if (owed !== undefined) {
    return rejectedAt(owed, 'The record is erased, but the strand has no record of the erasure')
  }
  if (!command.audited) return notAudited
  agent.importing = false
  agent.fresh = false
  agent.keyPair = keyPairFromSeed(seed)
  const isDerived = sealedSeed === undefined && derived.equals(seed)
  const sealed = seal(masterSeed, { ...seedContext(agent.name), secret: seed }, random).toString('hex')
  group.changeAgent(agent.name, {
    importing: false,
    fresh: false,
    ...(!isDerived && { sealedSeed: sealed }),
  })
  for (const row of openProposals(state, group, agent)) putProposal(group, agent.no, row)
  return importedOutcome(agent, 0)
}

function importedOutcome(agent: Agent | undefined, imported: number): Decision {
  assert(agent !== undefined, 'a part without new records belongs to an existing agent')
  const { importing } = agent
  const { seq: headSeq, hash: headHash } = agent.head
  return (): Outcome => ({ kind: 'imported', imported, headSeq, headHash, open: !importing })
}

/**
 * The outcome of an import that is not audited yet; the audit strand may be in another shard, and must have a
 * record first.
 */
const notAudited: Decision = () => ({ kind: 'auditRequired' })

function otherStrand(name: string): Refusal {
  return refuse('agent_exists', `Agent "${name}" already exists with another strand`)
}

function gapRefusal(nextSeq: number, firstSeq: number): Refusal {
  const detail = `The export begins at seq ${firstSeq}, but the strand continues at seq ${nextSeq}`
  return refuse('import_conflict', detail, { extra: { seq: nextSeq } })
}

/**
 * The refusal if a part does not continue the existing strand: common records must be equal, without a gap
 * after them.
 */
function connectionRefusal(
  state: ShardState,
  { agent, part, strand }: { agent: Agent; part: CheckedPart; strand: string },
  group: CommitGroup,
): Refusal | undefined {
  if (agent.strand !== strand) return otherStrand(agent.name)
  if (part.firstSeq > agent.head.seq + 1) return gapRefusal(agent.head.seq + 1, part.firstSeq)
  const last = Math.min(part.lastSeq, agent.head.seq)
  if (last < part.firstSeq || part.at(last)?.hash === hashAt(state, group, { agent, seq: last })) {
    const next = part.at(agent.head.seq + 1)
    return next === undefined || next.prev === agent.head.hash ? undefined : forkRefusal(next.seq)
  }
  // The hash of each record covers its predecessor, so all records after the first difference differ.
  let low = part.firstSeq
  let high = last
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (part.at(middle)?.hash === hashAt(state, group, { agent, seq: middle })) low = middle + 1
    else high = middle
  }
  return forkRefusal(low)
}

function forkRefusal(seq: number): Refusal {
  return refuse('import_conflict', `The export differs from the existing strand from seq ${seq} on`, {
    extra: { seq },
  })
}

/** The hash of a record of the strand as of a commit group. */
function hashAt(
  state: ShardState,
  group: CommitGroup,
  { agent, seq }: { agent: Agent; seq: number },
): string {
  if (seq === agent.head.seq) return agent.head.hash
  const record = group.recordAt(agent.no, seq) ?? recordBySeq(state.store.environment, agent.no, seq)
  assert(record !== undefined, 'a strand has no gaps')
  return record.hash
}

/** A part to check before it is imported. */
interface PartContext {
  found: Agent | undefined
  part: CheckedPart
  admin: boolean
  /** Absent for a strand that has never taken writes on this server. */
  judge: ImportJudge | undefined
}

/** The judge of an import into a strand that has taken writes; undefined for other strands. */
function judgeOf(state: ShardState, found: Agent | undefined, group: CommitGroup): ImportJudge | undefined {
  if (found === undefined || found.fresh) return undefined
  return new ImportJudge(state, { agent: found, zoneStays: isNamespaceAgent(found.name) }, group)
}

/** Whether an agent is that of an auth namespace, which only the creation of the namespace creates. */
function isNamespaceAgent(name: string): boolean {
  const organismId = memberOrganism(name)
  return organismId !== undefined && name === memberAddress(organismId, authMember)
}

const noNamespace = refuse('namespace_not_found', 'The organism has no auth namespace: create it first')

/**
 * The number of open proposals after a part; it is bounded, because a change of zone ends them all in one
 * commit.
 */
function openAfter(state: ShardState, found: Agent | undefined, part: CheckedPart): number {
  const before = found === undefined ? 0 : openProposalCount(state.store.environment, found.no)
  return part.effects.reduce(
    (count, { kind }) => count + (kind === 'proposal' ? 1 : kind === 'applied' ? -1 : 0),
    before,
  )
}

/** The seqs of erased records whose `sys/erase` record has not been imported, after a part. */
function owedAfter({ owedErasures }: Agent, part: CheckedPart): Set<number> {
  const owed = new Set(owedErasures)
  for (const { seq, erased } of part.records) {
    if (erased === true) owed.add(seq)
    const effect = part.effectOf(seq)
    if (effect?.kind === 'record' && effect.action === 'erase') owed.delete(effect.targetSeq)
  }
  return owed
}

function updateOwedErasures(agent: Agent, part: CheckedPart, group: CommitGroup): void {
  const owed = owedAfter(agent, part)
  if (owed.size + agent.owedErasures.length === 0) return
  agent.owedErasures = [...owed]
  group.changeAgent(agent.name, { owedErasures: agent.owedErasures })
}

/** 403 for a new edge to an agent that the caller's key does not reach, as on the route for edges. */
function edgeRefusal(part: CheckedPart, agents: readonly string[]): Refusal | undefined {
  for (const { seq } of agents.length === 0 ? [] : part.records) {
    const effect = part.effectOf(seq)
    if (effect?.kind !== 'edge' || !effect.live || reaches(agents, effect.dst)) continue
    return refuse(
      'forbidden',
      `Record ${seq} adds an edge to agent "${effect.dst}", which this key does not reach`,
    )
  }
  return undefined
}

/** The refusal if the new records of a part cannot be imported. */
function partRefusal(
  state: ShardState,
  { found, part, admin, judge }: PartContext,
  group: CommitGroup,
): Refusal | undefined {
  const [first] = part.records
  const last = part.records.at(-1)
  assert(first !== undefined && last !== undefined, 'there are new records')
  if (found !== undefined && !found.importing && !admin) {
    return refuse('forbidden', 'Importing into a strand that accepts writes requires a key with admin:*')
  }
  if (found !== undefined && part.key !== found.publicKey) {
    return rejectedAt(first.seq, 'The record names a key that is not in force')
  }
  if (found !== undefined && compareHlc(first.hlc, found.head.hlc) <= 0) {
    return rejectedAt(first.seq, 'The clock does not go forward')
  }
  const aheadMs = last.hlc.ms - state.clock() - limits.importClockAheadMsMax
  if (aheadMs > 0) {
    return refuse('clock_skew', 'The clock of this server is behind the records of the export, try again', {
      retryAfterSecs: Math.ceil(aheadMs / 1_000),
    })
  }
  const keys = (found?.retiredKeys.length ?? 0) + part.effects.filter(({ kind }) => kind === 'key').length
  if (keys > limits.keyRotationsMax) {
    return rejectedAt(last.seq, `The key was rotated more than ${limits.keyRotationsMax} times`)
  }
  if (openAfter(state, found, part) > limits.proposalsOpenMax + agentActions.length) {
    return rejectedAt(last.seq, `More than ${limits.proposalsOpenMax} proposals are open`)
  }
  const owed = found === undefined || judge === undefined ? 0 : owedAfter(found, part).size
  if (owed > limits.importPendingErasuresMax) {
    return rejectedAt(last.seq, 'Too many records are erased without a record of the erasure so far')
  }
  return judge === undefined
    ? firstFault(part.effects, (effect) => effectFault(state, { agent: found, part, effect }, group))
    : firstFault(part.records, (record) => {
        const effect = part.effectOf(record.seq)
        const fault = effect && effectFault(state, { agent: found, part, effect }, group)
        return fault ?? judge.take(record, effect)
      })
}

function firstFault<T extends { seq: number }>(
  all: readonly T[],
  faultOf: (one: T) => string | undefined,
): Refusal | undefined {
  for (const one of all) {
    const fault = faultOf(one)
    if (fault !== undefined) return rejectedAt(one.seq, fault)
  }
  return undefined
}

/**
 * The agent of a strand that begins with this part; its secret key is determined at the end of the import.
 */
function newAgent(
  state: ShardState,
  { command, part }: { command: CommandOf<'strandImport'>; part: CheckedPart },
  group: CommitGroup,
): Agent {
  const genesis = part.effectOf(0)
  assert(genesis?.kind === 'genesis', 'a strand begins with its genesis record')
  const { zone, createdAtMs } = genesis
  const { agent: name, strand } = command
  const agent: Agent = {
    name,
    no: state.store.agents.allocateNo(),
    zone,
    createdAtMs,
    publicKey: part.key,
    strand,
    keyIndex: 0,
    keyPair: noKeyPair(part.key),
    head: { seq: -1, hash: '', hlc: { ms: 0, counter: 0 }, signature: '' },
    strandBytes: 0,
    mutated: false,
    policies: [],
    retiredKeys: [],
    importing: true,
    fresh: true,
    owedErasures: [],
  }
  const row = { no: agent.no, zone, createdAtMs, publicKey: part.key, strand, importing: true, fresh: true }
  group.newAgents.set(name, row)
  state.store.agents.keep(agent)
  return agent
}

/** Stops the writes to a strand during an import, and the due times of its proposals. */
function stopWrites(state: ShardState, agent: Agent, group: CommitGroup): void {
  agent.importing = true
  agent.keyPair = noKeyPair(agent.publicKey)
  group.changeAgent(agent.name, { importing: true })
  for (const row of openProposals(state, group, agent)) holdProposal(group, agent.no, row)
}
