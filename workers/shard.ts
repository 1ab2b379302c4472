import { unreachable } from '../src/base/assert.js'
import { refuse } from '../src/base/errors.js'
import { limits } from '../src/base/limits.js'
import type { CommandFrame, OutcomeFrame } from '../src/protocol/frame.js'
import type { Command, Outcome, ShardFigures, StreamEvent, WriteOptions } from '../src/protocol/messages.js'
import { HlcClock } from '../src/strand/hlc.js'
import { agentKeyRotate, agentZoneSet } from './commands/agent-changes.js'
import { agentCreate, agentHead, agentList, agentStatus, keyClaim } from './commands/agents.js'
import { apiKeyCreate, apiKeyDelete, apiKeyList, apiKeysUsed } from './commands/api-keys.js'
import { auditAppend, auditOpen } from './commands/audit.js'
import { authChange } from './commands/auth/changes.js'
import { strandThen } from './commands/as-of.js'
import { authEndedList, authLookup } from './commands/auth/lookups.js'
import { edgeAdd, edgeList, edgeRemove } from './commands/graph.js'
import { ingestChunk, ingestOne } from './commands/ingest.js'
import { recordMutate } from './commands/mutations.js'
import { organismCreate, organismGet, organismList } from './commands/organisms.js'
import { policiesGet, policiesSet } from './commands/policies.js'
import { checkpointSign, strandLocate } from './commands/proof.js'
import { proposalDecide, proposalList, proposalsSweep } from './commands/proposals.js'
import { recordQuery } from './commands/query.js'
import { batchAppend, recordAppend, recordGet } from './commands/records.js'
import {
  headsAll,
  headsHold,
  headsMoved,
  logAppend,
  logFind,
  logOpen,
  logTold,
} from './commands/server-log.js'
import { strandImport, strandImportEnd } from './commands/strand-import.js'
import { isStreamed, logPage, streamEvent, streamPage, watch } from './commands/stream.js'
import { mailDue, mailSettle } from './auth/outbox.js'
import { CommitGroup } from './commit-group.js'
import { answeredBefore, isCheck, keepAnswer, keyedRequest } from './kept-answers.js'
import { ingestKeyed } from './kept-ingest.js'
import { refused, type Decision, type ShardState } from './shard-state.js'
import { writeBytesMax } from './store/file-room.js'

/** Takes what a commit group led to, to where it came from. */
export type Tell = (frame: OutcomeFrame) => void

const noRoom = refuse('storage_full', 'The data disk has no room for a write; reads go on')

/** A command that may write. */
type Write = Extract<Command, { options: WriteOptions } | { kind: 'keyClaim' }>

/** A command that only reads. */
type Read = Exclude<Command, Write>

/** A command with the number that its outcome goes back under. */
type Numbered<C> = [id: number, command: C]

/**
 * One shard: takes commands, decides them one after the other, commits what they write together, and then tells.
 * It waits for nothing but its next frame (house.md, The way of one write).
 */
export class Shard {
  readonly #state: ShardState
  readonly #hlc: HlcClock
  readonly #tell: Tell
  readonly #figures: ShardFigures = { records: 0, commits: 0, commitSecs: 0, agents: 0 }

  constructor(state: ShardState, tell: Tell) {
    this.#state = state
    this.#hlc = new HlcClock(state.clock, state.store.lastHlc)
    this.#tell = tell
    this.#figures.agents = state.store.agents.count
  }

  /**
   * Carries out everything that has arrived: the writes in commit groups, then the reads, which so see the writes.
   * @throws Error when a commit failed or something that must hold does not: the shard must stop
   */
  run(commands: CommandFrame): void {
    const { writes, reads } = sortOut(commands)
    let next = 0
    while (next < writes.length) next = this.#commitFrom(writes, next)
    if (reads.length === 0) return
    const failures: string[] = []
    const outcomes: OutcomeFrame['outcomes'] = reads.map(([id, command]) => {
      this.#state.beat()
      return [id, this.#read(command, failures)]
    })
    this.#tell({ outcomes, events: [], figures: this.#figures, ...(failures.length > 0 && { failures }) })
  }

  /** A read that fails, as for a damaged record, is not answered with data; it changes nothing, so the shard goes on. */
  #read(command: Read, failures: string[]): Outcome {
    try {
      return read(this.#state, command)
    } catch (error) {
      failures.push(
        `${command.kind}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      )
      return refused(refuse('internal_error', 'Expected the stored records to be whole'))
    }
  }

  /** True when an idle shard has something to do. */
  get needsStep(): boolean {
    return this.#state.store.needsStep
  }

  /** A part of the work that an idle shard does for later. */
  step(): void {
    this.#state.store.step()
  }

  /** Decides and commits writes from `from` on, as many as one group takes; gives the index behind them. */
  #commitFrom(writes: Numbered<Write>[], from: number): number {
    if (!this.#state.store.hasRoom(roomFor(writes, from))) return this.#refuseAll(writes, from)
    const group = new CommitGroup(this.#hlc, this.#state.random)
    const decisions: Numbered<Decision>[] = []
    let next = from
    for (; next < writes.length && group.size < limits.commitRecordsMax; next++) {
      const write = writes[next]
      this.#state.beat()
      if (write !== undefined) decisions.push([write[0], decide(this.#state, write[1], group)])
    }
    group.seal()
    if (!group.empty) {
      const startedAt = performance.now()
      this.#state.store.commit(group, this.#state.clock())
      this.#state.beat()
      this.#figures.commitSecs += (performance.now() - startedAt) / 1000
      this.#figures.commits++
      this.#figures.records += group.size
      this.#figures.agents = this.#state.store.agents.count
    }
    const outcomes: OutcomeFrame['outcomes'] = decisions.map(([id, decision]) => [
      id,
      typeof decision === 'function' ? decision() : refused(decision),
    ])
    const policyChanges = [...group.agentChanges].flatMap(([name, { policies }]) =>
      policies === undefined ? [] : [name],
    )
    const erasedOf = [
      ...new Set(group.erasures.map(({ agentNo }) => this.#state.store.agents.nameOf(agentNo))),
    ]
    const importedOf = [...new Set(group.imported.map(({ agent }) => agent.name))]
    const { made, gone } = group.apiKeyChanges
    const events = this.#eventsOf(group)
    this.#tell({
      outcomes,
      events,
      figures: this.#figures,
      ...(policyChanges.length > 0 && { policyChanges }),
      ...(erasedOf.length > 0 && { erasedOf }),
      ...(group.changedRecords.length > 0 && { changedRecords: group.changedRecords }),
      ...(importedOf.length > 0 && { importedOf }),
      ...(made.length + gone.length > 0 && { apiKeyChanges: group.apiKeyChanges }),
    })
    return next
  }

  /** Nothing is decided that could not be committed. */
  #refuseAll(writes: Numbered<Write>[], from: number): number {
    const outcomes: OutcomeFrame['outcomes'] = writes.slice(from).map(([id]) => [id, refused(noRoom)])
    this.#tell({ outcomes, events: [], figures: this.#figures })
    return writes.length
  }

  #eventsOf(group: CommitGroup): StreamEvent[] {
    const { watched } = this.#state
    if (watched.size === 0) return []
    const all = watched.has('')
    return group.records
      .filter((record) => (all || watched.has(record.agent.name)) && isStreamed(record))
      .map((record) => streamEvent(record.agent.name, record))
  }
}

/** What the next group can make the data file longer by, bytes, as far as that can be told before it is decided. */
function roomFor(writes: readonly Numbered<Write>[], from: number): number {
  let bytes = 0
  for (const [, command] of writes.slice(from, from + limits.commitRecordsMax)) {
    const body = 'body' in command ? command.body : 'chunk' in command ? command.chunk : undefined
    bytes += writeBytesMax(body?.length ?? 0)
  }
  return bytes
}

/**
 * Parts writes from reads, and puts the writes of one agent together, in the order they came: so they lie together
 * in a block. Commands of one frame come from requests that were under way at the same time, so no order between
 * agents was promised to anyone.
 */
function sortOut(commands: CommandFrame): { writes: Numbered<Write>[]; reads: Numbered<Read>[] } {
  const reads: Numbered<Read>[] = []
  const byAgent = new Map<string, Numbered<Write>[]>()
  for (const [id, command] of commands) {
    if (!isWrite(command)) {
      reads.push([id, command])
      continue
    }
    const agent = agentOf(command)
    const others = byAgent.get(agent)
    if (others === undefined) byAgent.set(agent, [[id, command]])
    else others.push([id, command])
  }
  return { writes: [...byAgent.values()].flat(), reads }
}

function agentOf(command: Write): string {
  return 'agent' in command ? command.agent : ''
}

function isWrite(command: Command): command is Write {
  return 'options' in command || command.kind === 'keyClaim'
}

/** Decides a write, or finds that it was answered before under its idempotency key. */
function decide(state: ShardState, command: Write, group: CommitGroup): Decision {
  const idempotency = 'options' in command ? command.options.idempotency : undefined
  if (idempotency === undefined) return write(state, command, group)
  if (command.kind === 'ingestChunk' && command.agent === '') {
    return ingestKeyed(state, { command, ...idempotency }, group)
  }
  const request = keyedRequest(command, { ...idempotency, agent: agentOf(command) })
  const before = answeredBefore(state, group, request)
  if (before !== undefined) return before
  const decision = write(state, command, group)
  if (typeof decision === 'function' && !isCheck(command))
    keepAnswer(state, group, { ...request, outcome: decision })
  return decision
}

function write(state: ShardState, command: Write, group: CommitGroup): Decision {
  switch (command.kind) {
    case 'recordAppend':
      return recordAppend(state, command, group)
    case 'batchAppend':
      return batchAppend(state, command, group)
    case 'ingestOne':
      return ingestOne(state, command, group)
    case 'ingestChunk':
      return ingestChunk(state, command, group)
    case 'recordMutate':
      return recordMutate(state, command, group)
    case 'agentCreate':
      return agentCreate(state, command, group)
    case 'policiesSet':
      return policiesSet(state, command, group)
    case 'agentZoneSet':
      return agentZoneSet(state, command, group)
    case 'agentKeyRotate':
      return agentKeyRotate(state, command, group)
    case 'proposalDecide':
      return proposalDecide(state, command, group)
    case 'proposalsSweep':
      return proposalsSweep(state, group)
    case 'edgeAdd':
      return edgeAdd(state, command, group)
    case 'edgeRemove':
      return edgeRemove(state, command, group)
    case 'strandImport':
      return strandImport(state, command, group)
    case 'strandImportEnd':
      return strandImportEnd(state, command, group)
    case 'keyClaim':
      return keyClaim(state, command, group)
    case 'requestClaim':
      return requestClaim(state)
    case 'organismCreate':
      return organismCreate(state, command, group)
    case 'apiKeyCreate':
      return apiKeyCreate(state, command, group)
    case 'apiKeyDelete':
      return apiKeyDelete(state, command, group)
    case 'apiKeysUsed':
      return apiKeysUsed(state, command, group)
    case 'auditOpen':
      return auditOpen(state, group)
    case 'auditAppend':
      return auditAppend(state, command, group)
    case 'authChange':
      return authChange(state, command, group)
    case 'mailSettle':
      return mailSettle(state, command, group)
    case 'logOpen':
      return logOpen(state, command, group)
    case 'logAppend':
      return logAppend(state, command, group)
    default:
      return unreachable(command)
  }
}

/** Deciding what was asked under the key before is all there is to it; what is drawn is kept with the answer. */
function requestClaim(state: ShardState): Decision {
  const drawn = Buffer.from(state.random(DRAWN_BYTES)).toString('hex')
  return () => ({ kind: 'claimed', drawn })
}

const DRAWN_BYTES = 12

function read(state: ShardState, command: Read): Outcome {
  switch (command.kind) {
    case 'recordGet':
      return recordGet(state, command)
    case 'recordQuery':
      return recordQuery(state, command)
    case 'edgeList':
      return edgeList(state, command)
    case 'strandThen':
      return strandThen(state, command)
    case 'agentHead':
      return agentHead(state, command)
    case 'agentStatus':
      return agentStatus(state, command)
    case 'policiesGet':
      return policiesGet(state, command)
    case 'proposalList':
      return proposalList(state, command)
    case 'organismGet':
      return organismGet(state, command)
    case 'organismList':
      return organismList(state, command)
    case 'agentList':
      return agentList(state, command)
    case 'streamPage':
      return streamPage(state, command)
    case 'logPage':
      return logPage(state, command)
    case 'watch':
      return watch(state, command)
    case 'strandLocate':
      return strandLocate(state, command)
    case 'checkpointSign':
      return checkpointSign(state, command)
    case 'apiKeyList':
      return apiKeyList(state, command)
    case 'authLookup':
      return authLookup(state, command)
    case 'authEndedList':
      return authEndedList(state)
    case 'mailDue':
      return mailDue(state, command)
    case 'headsMoved':
      return headsMoved(state, command)
    case 'headsAll':
      return headsAll(state, command)
    case 'headsHold':
      return headsHold(state, command)
    case 'logTold':
      return logTold(state, command)
    case 'logFind':
      return logFind(state, command)
    default:
      return unreachable(command)
  }
}
