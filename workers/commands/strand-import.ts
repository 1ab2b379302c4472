import { assert } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import type { ImportEnd } from '../../src/protocol/import-messages.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { authorOf } from '../../src/protocol/proposal-messages.js'
import { compareHlc } from '../../src/strand/hlc.js'
import { canonicalJson } from '../../src/strand/json.js'
import { keyPairFromSeed, agentSeed } from '../../src/strand/keys.js'
import { importedType } from '../../src/strand/record-type.js'
import { seal } from '../../src/strand/seal.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { CheckedPart, rejectedAt } from '../import/part.js'
import { effectFault, applyEffect } from '../import/apply.js'
import { putProposal, openProposals } from '../mutations/pending.js'
import { findAgent, type Decision, type ShardState, type Steps, type Turn } from '../shard/state.js'
import { readAgentSeed, noKeyPair, seedContext } from '../store/tables/agents.js'
import type { Agent } from '../store/tables/agent.js'
import { recordBySeq } from '../store/tables/records.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Imports of strands. */
export const importCommands = {
  writes: {
    strandImport: { decide: strandImport, isLong: isLargePart, steps: strandImportSteps },
  },
} satisfies FeatureCommands

type StrandImport = CommandOf<'strandImport'>

/**
 * Imports a checked part of an export (docs/adr/0022-import.md). Records that exist are compared only by
 * their hashes. The last part of an import also signs the record of the import, and the agent takes writes.
 * 409 agent_exists for another strand of that name, import_conflict if it does not continue the strand, or if
 * the strand takes writes; 422 import_rejected, 503 clock_skew.
 */
function strandImport(state: ShardState, command: StrandImport, group: CommitGroup): Decision {
  return applyPart(state, { command, part: CheckedPart.of(command) }, group)
}

/** Whether a part is so large that it is read over several turns. */
function isLargePart({ chunk, firstSeq, lastSeq }: StrandImport): boolean {
  return lastSeq - firstSeq >= limits.importChunkLines || chunk.length > limits.commitBytesMax
}

/** Imports a large part as `strandImport` does, but reads it over several turns and commits it in another one. */
function* strandImportSteps(state: ShardState, command: StrandImport, turn: Turn): Steps<Decision> {
  const part = yield* CheckedPart.read(command, turn)
  yield
  return applyPart(state, { command, part }, turn.group)
}

/** Applies a whole part, or nothing. */
function applyPart(
  state: ShardState,
  { command, part }: { command: StrandImport; part: CheckedPart },
  group: CommitGroup,
): Decision {
  const found = findAgent(state, group, command.agent)
  const refusal = connectionRefusal(state, { found, part, strand: command.strand }, group)
  if (refusal !== undefined) return refusal
  part.dropUntil(found?.head.seq ?? -1)
  if (found?.importing === false) return part.empty ? importedOutcome(found, 0) : takesWrites(found)
  const { end } = command
  const seed = end === undefined ? undefined : signingSeed(state, command.agent, end)
  const ends = end !== undefined && part.lastSeq === end.lastSeq && (found?.head.seq ?? -1) <= end.lastSeq
  if (part.empty && !ends) return importedOutcome(found, 0)
  const fault =
    partRefusal(state, { found, part, fromSeq: command.fromSeq }, group) ??
    (end !== undefined && seed === undefined ? seedUnknown(end) : undefined) ??
    group.reserve(1)
  if (fault !== undefined) return fault
  if (!command.audited) return notAudited
  const agent = found ?? newAgent(state, { command, part }, group)
  appendRecords(state, { agent, part }, group)
  if (ends && seed !== undefined) endImport(state, { agent, seed, command }, group)
  return importedOutcome(agent, part.records.length)
}

function appendRecords(
  state: ShardState,
  { agent, part }: { agent: Agent; part: CheckedPart },
  group: CommitGroup,
): void {
  for (const record of part.records) {
    const keyIndex = agent.retiredKeys.length
    const strandBytes = agent.strandBytes + (record.erased === true ? 0 : record.body.length)
    const commitment = part.commitmentOf(record.seq)
    const own = { agentNo: agent.no, keyIndex, agent, strandBytes }
    group.appendImported(
      Object.assign(record, { imported: true as const, ...own }, commitment && { commitment }),
    )
    const effect = part.effectOf(record.seq)
    if (effect !== undefined) applyEffect(state, { agent, record, effect }, group)
  }
  assert(agent.head.signature !== '', 'a part ends with a signed record')
}

/**
 * Opens the agent for writes, by a signed record that closes the imported part of the strand
 * (docs/FORMAT.md, Imported records).
 */
function endImport(
  state: ShardState,
  { agent, seed, command }: { agent: Agent; seed: Uint8Array; command: StrandImport },
  group: CommitGroup,
): void {
  const { masterSeed, random } = state
  agent.importing = false
  agent.importedRecords = agent.head.seq + 1
  agent.keyPair = keyPairFromSeed(seed)
  agent.policies = []
  agent.policiesBy = undefined
  const { importedRecords, policies, policiesBy } = agent
  const body = { records: importedRecords, head: agent.head.hash, ...authorOf(command) }
  const record = group.append(agent, {
    type: importedType,
    body: Buffer.from(canonicalJson(body)),
    signing: 'record',
  })
  assert(!('code' in record), 'an import moves the clock less than a write may')
  const isDerived =
    sealedSeedOf(state, agent.name) === undefined && agentSeed(masterSeed, agent.name).equals(seed)
  const sealed = seal(masterSeed, { ...seedContext(agent.name), secret: seed }, random).toString('hex')
  const row = { importing: false, importedRecords, policies, policiesBy }
  group.changeAgent(agent.name, { ...row, ...(!isDerived && { sealedSeed: sealed }) })
  // Earlier versions imported proposals as open ones.
  for (const one of openProposals(state, group, agent)) {
    putProposal(group, agent.no, { ...one, state: 'rejected', reason: 'imported', endedAtMs: state.clock() })
  }
}

function sealedSeedOf({ store }: ShardState, agent: string): string | undefined {
  return store.agents.row(agent)?.sealedSeed
}

/** The seed of the key in force at the end of an import; undefined if the server does not have it. */
function signingSeed(
  state: ShardState,
  agent: string,
  { publicKey, seed: sent }: ImportEnd,
): Uint8Array | undefined {
  const { masterSeed } = state
  const stored = readAgentSeed(masterSeed, agent, sealedSeedOf(state, agent))
  return [sent, stored, agentSeed(masterSeed, agent)].find(
    (one) => one !== undefined && keyPairFromSeed(one).publicKey === publicKey,
  )
}

function seedUnknown({ publicKey }: ImportEnd): Refusal {
  return refuse(
    'import_rejected',
    `The seed of the key ${publicKey} is not on this server: send it with the export`,
    { extra: { public_key: publicKey } },
  )
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

function takesWrites({ name, head }: Agent): Refusal {
  return refuse(
    'import_conflict',
    `Agent "${name}" accepts writes here, so no more records can be imported`,
    {
      extra: { seq: head.seq + 1 },
    },
  )
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
  { found: agent, part, strand }: { found: Agent | undefined; part: CheckedPart; strand: string },
  group: CommitGroup,
): Refusal | undefined {
  if (agent === undefined) return part.firstSeq === 0 ? undefined : gapRefusal(0, part.firstSeq)
  if (agent.strand !== strand) {
    return refuse('agent_exists', `Agent "${agent.name}" already exists with another strand`)
  }
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

/** The refusal if the new records of a part cannot be imported. */
function partRefusal(
  state: ShardState,
  { found, part, fromSeq }: { found: Agent | undefined; part: CheckedPart; fromSeq: number },
  group: CommitGroup,
): Refusal | undefined {
  const [first] = part.records
  const last = part.records.at(-1)
  if (first === undefined || last === undefined) return undefined
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
  for (const effect of part.effects) {
    const fault = effectFault(state, { agent: found, effect, fromSeq }, group)
    if (fault !== undefined) return rejectedAt(effect.seq, fault)
  }
  return undefined
}

/**
 * The agent of a strand that begins with this part; its secret key is determined at the end of the import.
 */
function newAgent(
  state: ShardState,
  { command, part }: { command: StrandImport; part: CheckedPart },
  group: CommitGroup,
): Agent {
  const genesis = part.effectOf(0)
  assert(genesis?.kind === 'genesis', 'a strand begins with its genesis record')
  const { zone, createdAtMs } = genesis
  const { agent: name, strand } = command
  const row = { no: state.store.agents.allocateNo(), zone, createdAtMs, publicKey: part.key, strand }
  const agent: Agent = {
    ...row,
    name,
    keyIndex: 0,
    keyPair: noKeyPair(part.key),
    head: { seq: -1, hash: '', hlc: { ms: 0, counter: 0 }, signature: '' },
    strandBytes: 0,
    mutated: false,
    policies: [],
    retiredKeys: [],
    importing: true,
    importedRecords: 0,
  }
  group.newAgents.set(name, { ...row, importing: true })
  state.store.agents.keep(agent)
  return agent
}
