import type { Policy } from '../../src/auth/row-policy.js'
import type { Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits.js'
import type {
  AgentIngested,
  CommandOf,
  IngestedOutcome,
  LineFault,
  UserAccess,
  WriteOptions,
} from '../../src/protocol/messages.js'
import { readJson } from '../../src/strand/json.js'
import type { CommitGroup, Draft, PendingRecord } from '../commit-group.js'
import { covers, grantOf, notAllowed, type Grant } from '../row-access.js'
import type { Decision, ShardState } from '../shard-state.js'
import { findAgent } from '../shard-state.js'
import { isGood, signAhead, signedAtOnceMax, type Ahead } from '../sign-ahead.js'
import type { Steps, Turn } from '../turn.js'
import { makeAgent } from './agents.js'
import { draftOf, faulty, isObject, readBareDraft, type DraftRules } from './drafts.js'
import { appendOne, draftRules, emergeRefusal, targetAgent } from './records.js'

type IngestChunk = CommandOf<'ingestChunk'>

/** Appends one record whose body is the request's body (contract.md 5, POST /v1/ingest/:agent). */
export function ingestOne(state: ShardState, command: CommandOf<'ingestOne'>, group: CommitGroup): Decision {
  const draft = readBareDraft(command.body, ingestRules(state, command.options))
  if ('code' in draft) return draft
  return appendOne(state, { ...command, emerge: true, draft }, group)
}

/** Drafts of ingest are marked for good, whether or not a sink is set up: it may be later (docs/adr/0013). */
function ingestRules(state: ShardState, options: WriteOptions): DraftRules {
  return { ...draftRules(state, options), ingested: true }
}

/** One line that was read: what to append, or why not. */
interface ReadLine {
  line: number
  agent: string
  draft: Draft | Refusal
  /** How the policies of its agent judged it, which holds as long as they are the same. */
  judged?: { policies: readonly Policy[]; allowed: boolean }
}

/** Lines of a chunk that were read. */
export interface ReadLines {
  command: IngestChunk
  lines: readonly ReadLine[]
}

/** Lines of a chunk that are decided before the next look at how long the turn has lasted. */
const PIECE_LINES = 64

/**
 * Appends the lines of one chunk (contract.md 5, NDJSON), piece by piece and turn by turn. Agents emerge from their first
 * line.
 */
export function* ingestPieces(state: ShardState, command: IngestChunk, turn: Turn): Steps<Decision> {
  const tally = new Tally()
  const rules = ingestRules(state, command.options)
  const begun = targetRefusal(state, command, turn.group)
  if (begun !== undefined) return begun
  let lines: ReadLine[] = []
  for (const raw of rawLines(command)) {
    lines.push(readLine(command, raw, rules))
    if (lines.length < PIECE_LINES && !turn.spent()) continue
    const refusal = writeLines(state, { command, lines, tally }, turn.group)
    if (refusal !== undefined) return refusal
    lines = []
    if (turn.spent()) yield
  }
  return writeLines(state, { command, lines, tally }, turn.group) ?? (() => tally.outcome())
}

/** Reads the lines of a chunk turn by turn, and judges them as far as that can be done before they are written. */
export function* readLines(state: ShardState, command: IngestChunk, turn: Turn): Steps<ReadLines | Refusal> {
  const refusal = targetRefusal(state, command, turn.group)
  if (refusal !== undefined) return refusal
  const rules = ingestRules(state, command.options)
  const lines: ReadLine[] = []
  let judge = new Judge(state, command.access, turn.group)
  for (const raw of rawLines(command)) {
    const line = readLine(command, raw, rules)
    judge.verdict(line)
    lines.push(line)
    if (!turn.spent()) continue
    yield
    judge = new Judge(state, command.access, turn.group)
  }
  return { command, lines }
}

/**
 * Chains and signs lines that are to be written in one group, where they are many. Undefined where that is left to their
 * group: there are few, or one is bad and none is written.
 */
export function* signLines(
  state: ShardState,
  reads: readonly ReadLines[],
  turn: Turn,
): Steps<Ahead | undefined> {
  const good: { agent: string; draft: Draft }[] = []
  for (const { command, lines } of reads) {
    const judge = new Judge(state, command.access, turn.group)
    for (const line of lines) {
      const draft = judge.verdict(line)
      if (!('code' in draft)) good.push({ agent: line.agent, draft })
      else if (command.mode !== 'skip') return undefined
    }
  }
  return good.length > signedAtOnceMax ? yield* signAhead(state, good, turn) : undefined
}

/** What was signed ahead, where it is still what is to be written next. */
export function stillSigned(
  state: ShardState,
  { reads, ahead }: { reads: readonly ReadLines[]; ahead: Ahead | undefined },
  group: CommitGroup,
): Ahead | undefined {
  if (ahead === undefined || !isGood(state, ahead, group)) return undefined
  const same = reads.every(({ command, lines }) => {
    const judge = new Judge(state, command.access, group)
    return lines.every((line) => isDraft(judge.verdict(line)) === isSigned(ahead, line))
  })
  return same ? ahead : undefined
}

function isDraft(verdict: Draft | Refusal): verdict is Draft {
  return !('code' in verdict)
}

function isSigned(ahead: Ahead, { draft }: ReadLine): boolean {
  return isDraft(draft) && ahead.records.has(draft)
}

/** Whether every line may be written, as a group sees it. */
export function areAllGood(state: ShardState, { command, lines }: ReadLines, group: CommitGroup): boolean {
  const judge = new Judge(state, command.access, group)
  return lines.every((line) => isDraft(judge.verdict(line)))
}

/** Writes lines that were read, in one group; `ahead`: as they were signed, which must still hold. */
export function writeRead(
  state: ShardState,
  read: ReadLines,
  { group, ahead }: { group: CommitGroup; ahead: Ahead | undefined },
): Decision {
  const tally = new Tally()
  return writeLines(state, { ...read, tally, ahead }, group) ?? (() => tally.outcome())
}

/** Why none of the lines may be written. */
function targetRefusal(state: ShardState, command: IngestChunk, group: CommitGroup): Refusal | undefined {
  const { access, options, agent } = command
  if (options.ifMatch === undefined && (access === undefined || agent === '')) return undefined
  const target = targetAgent(state, { ...command, emerge: false }, group)
  return 'code' in target ? target : undefined
}

/** Writes lines, or counts them where the mode says so. @returns why nothing was written where that is for all of them */
function writeLines(
  state: ShardState,
  { command, lines, tally, ahead }: ReadLines & { tally: Tally; ahead?: Ahead | undefined },
  group: CommitGroup,
): Refusal | undefined {
  const refusal = tally.accepted > 0 ? undefined : targetRefusal(state, command, group)
  if (refusal !== undefined) return refusal
  const judge = new Judge(state, command.access, group)
  const verdicts = lines.map((line) => judge.verdict(line))
  const writes = command.mode === 'skip' || (command.mode === 'reject' && verdicts.every(isDraft))
  // All or none: the readings are there for every line, and for the genesis record of an agent that emerges from it.
  const reserves = command.mode === 'reject' && writes && ahead === undefined
  const skew = reserves ? group.reserve(2 * lines.length) : undefined
  if (skew !== undefined) return skew
  for (const [place, line] of lines.entries()) {
    const draft = verdicts[place] ?? notAllowed
    if ('code' in draft) tally.reject(line, draft)
    else if (!writes) tally.count(line.agent)
    else {
      const record = appendLine(state, line.agent, { draft, group, ahead })
      if ('code' in record) tally.reject(line, record)
      else tally.accept(line.agent, record)
    }
  }
  return undefined
}

/** How the lines of one agent are judged: what a user's policies grant; or that none may be written. */
type Standing = Refusal | { grant: Grant; policies: readonly Policy[] }

/** Judges lines as one group sees their agents: by what a user's policies allow, a key may write them all. */
class Judge {
  readonly #state: ShardState
  readonly #access: UserAccess | undefined
  readonly #group: CommitGroup
  readonly #found = new Map<string, Standing>()

  constructor(state: ShardState, access: UserAccess | undefined, group: CommitGroup) {
    this.#state = state
    this.#access = access
    this.#group = group
  }

  /** What to append, or why not. */
  verdict(line: ReadLine): Draft | Refusal {
    if ('code' in line.draft) return line.draft
    const found = this.#found.get(line.agent) ?? this.#find(line.agent)
    if ('code' in found) return found
    const { grant, policies } = found
    if (line.judged?.policies !== policies) {
      line.judged = { policies, allowed: covers(grant, line.draft.body) }
    }
    return line.judged.allowed ? line.draft : notAllowed
  }

  #find(name: string): Standing {
    const found = this.#standing(name)
    this.#found.set(name, found)
    return found
  }

  #standing(name: string): Standing {
    const access = this.#access
    if (access === undefined) return emergeRefusal(this.#state, name, this.#group) ?? everything
    const agent = targetAgent(this.#state, { agent: name, emerge: false, options: {}, access }, this.#group)
    if ('code' in agent) return agent
    return { grant: grantOf(agent, 'write', access), policies: agent.policies }
  }
}

const everything: Standing = { grant: undefined, policies: [] }

/** Some lines of a chunk, as a chunk of their own. */
type AgentLines = Required<Pick<IngestChunk, 'chunk' | 'lineNumbers'>>

/** The lines of a chunk by the agents that they name, and those that name none as the strict rules read them. */
export function* linesByAgent(
  command: IngestChunk,
  turn: Turn,
): Steps<{ nameless: AgentLines | undefined; byAgent: Map<string, AgentLines> }> {
  const { chunk, lineNumbers = [] } = command
  const found = new Map<string, { parts: Uint8Array[]; lineNumbers: number[] }>()
  let at = 0
  for (const line of lineNumbers) {
    const lineFeed = chunk.indexOf(0x0a, at)
    const next = lineFeed === -1 ? chunk.length : lineFeed + 1
    const bytes = chunk.subarray(at, next)
    at = next
    const parsed = readJson(bytes, limits.nestingDepthMax + 1)
    const agent = 'code' in parsed || !isObject(parsed.value) ? '' : parsed.value['agent']
    const name = typeof agent === 'string' ? agent : ''
    const others = found.get(name)
    if (others === undefined) found.set(name, { parts: [bytes], lineNumbers: [line] })
    else {
      others.parts.push(bytes)
      others.lineNumbers.push(line)
    }
    if (turn.spent()) yield
  }
  const byAgent = new Map<string, AgentLines>()
  for (const [name, { parts, lineNumbers }] of found) {
    byAgent.set(name, { chunk: Buffer.concat(parts), lineNumbers })
  }
  const nameless = byAgent.get('')
  byAgent.delete('')
  return { nameless, byAgent }
}

function appendLine(
  state: ShardState,
  name: string,
  { draft, group, ahead }: { draft: Draft; group: CommitGroup; ahead: Ahead | undefined },
): PendingRecord | Refusal {
  const chained = ahead?.records.get(draft)
  const newAgent = ahead?.newAgents.get(name)
  if (newAgent !== undefined && findAgent(state, group, name) === undefined) {
    const made = makeAgent(state, { agent: name, zone: 'governed', ahead: newAgent }, group)
    if ('code' in made) return made
  }
  const agent = targetAgent(state, { agent: name, emerge: true, options: {} }, group)
  if ('code' in agent) return agent
  return chained === undefined ? group.append(agent, draft) : group.appendChained(agent, draft, chained)
}

/** The bytes of a line and its number. */
interface RawLine {
  line: number
  bytes: Uint8Array
}

/** The lines of a chunk. Blank ones, which only a chunk for one agent has, are passed over but counted. */
function* rawLines({ chunk, firstLine, lineNumbers }: IngestChunk): Generator<RawLine> {
  let place = 0
  for (let from = 0; from < chunk.length; place++) {
    const found = chunk.indexOf(0x0a, from)
    const to = found === -1 ? chunk.length : found
    const bytes = chunk.subarray(from, to)
    from = to + 1
    if (lineNumbers === undefined && isBlank(bytes)) continue
    yield { line: lineNumbers?.[place] ?? firstLine + place, bytes }
  }
}

/** A line of one agent, or `{agent, data, type?}` that the front thread has sent to this shard by its agent. */
function readLine(
  { agent: named, lineNumbers }: IngestChunk,
  { line, bytes }: RawLine,
  rules: DraftRules,
): ReadLine {
  if (lineNumbers === undefined) return { line, agent: named, draft: readBareDraft(bytes, rules) }
  const parsed = readJson(bytes, limits.nestingDepthMax + 1)
  if ('code' in parsed) return { line, agent: '', draft: parsed }
  if (!isObject(parsed.value)) return { line, agent: '', draft: faulty('', 'Expected an object') }
  const { agent, ...record } = parsed.value
  if (typeof agent !== 'string')
    return { line, agent: '', draft: faulty('/agent', 'Expected the name of an agent') }
  return { line, agent, draft: draftOf(record, '', rules) }
}

function isBlank(bytes: Uint8Array): boolean {
  for (const byte of bytes) {
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false
  }
  return true
}

/** Counts what became of the lines, by agent. */
class Tally {
  readonly #agents = new Map<string, AgentIngested>()
  readonly #faults: LineFault[] = []
  readonly #byCode: Record<string, number> = {}
  #accepted = 0
  #rejected = 0

  /** Lines that were written, or that could be. */
  get accepted(): number {
    return this.#accepted
  }

  accept(agent: string, record: PendingRecord): void {
    const row = this.#row(agent)
    if (row.firstSeq < 0) row.firstSeq = record.seq
    row.lastSeq = record.seq
    row.chainHead = record.hash
    this.count(agent)
  }

  /** Counts a line that is good but not written. */
  count(agent: string): void {
    this.#row(agent).accepted++
    this.#accepted++
  }

  reject({ line, agent }: ReadLine, refusal: Refusal): void {
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
