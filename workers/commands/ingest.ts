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
import { draftOf, faulty, isObject, readBareDraft, type DraftRules } from './drafts.js'
import { appendOne, draftRules, targetAgent } from './records.js'

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
}

/** Appends the lines of one chunk (contract.md 5, NDJSON). Agents emerge from their first line. */
export function ingestChunk(
  state: ShardState,
  command: CommandOf<'ingestChunk'>,
  group: CommitGroup,
): Decision {
  const { access } = command
  const forOne = command.agent !== ''
  if (command.options.ifMatch !== undefined || (access !== undefined && forOne)) {
    const agent = targetAgent(state, { ...command, emerge: true }, group)
    if ('code' in agent) return agent
  }
  const rules = ingestRules(state, command.options)
  const { lineNumbers } = command
  const read =
    lineNumbers === undefined ? linesOf(command, rules) : addressedLines(command, lineNumbers, rules)
  const lines = access === undefined ? read : allowedLines(state, read, { access, group })
  const tally = new Tally()
  const bad = lines.some(({ draft }) => 'code' in draft)
  const writes = command.mode === 'skip' || (command.mode === 'reject' && !bad)
  // All or none: the readings are there for every line, and for the genesis record of an agent that emerges from it.
  const skew = command.mode === 'reject' && writes ? group.reserve(2 * lines.length) : undefined
  if (skew !== undefined) return skew
  for (const line of lines) {
    if ('code' in line.draft) tally.reject(line, line.draft)
    else if (!writes) tally.count(line.agent)
    else {
      const record = appendLine(state, line.agent, { draft: line.draft, group })
      if ('code' in record) tally.reject(line, record)
      else tally.accept(line.agent, record)
    }
  }
  return () => tally.outcome()
}

/** Some lines of a chunk, as a chunk of their own. */
type Lines = Required<Pick<CommandOf<'ingestChunk'>, 'chunk' | 'lineNumbers'>>

/** The lines of a chunk by the agents that they name, and those that name none as the strict rules read them. */
export function linesByAgent({ chunk, lineNumbers = [] }: CommandOf<'ingestChunk'>): {
  nameless: Lines | undefined
  byAgent: Map<string, Lines>
} {
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
  }
  const byAgent = new Map<string, Lines>()
  for (const [name, { parts, lineNumbers }] of found) {
    byAgent.set(name, { chunk: Buffer.concat(parts), lineNumbers })
  }
  const nameless = byAgent.get('')
  byAgent.delete('')
  return { nameless, byAgent }
}

/** The lines with what a user's policies do not allow refused. */
function allowedLines(
  state: ShardState,
  lines: ReadLine[],
  { access, group }: { access: UserAccess; group: CommitGroup },
): ReadLine[] {
  const grants = new Map<string, Grant | Refusal>()
  return lines.map((line) => {
    if ('code' in line.draft) return line
    let grant = grants.get(line.agent)
    if (grant === undefined) {
      const agent = targetAgent(state, { agent: line.agent, emerge: false, options: {}, access }, group)
      grant = 'code' in agent ? agent : grantOf(agent, 'write', access)
      grants.set(line.agent, grant)
    }
    if (grant !== undefined && 'code' in grant) return { ...line, draft: grant }
    return covers(grant, line.draft.body) ? line : { ...line, draft: notAllowed }
  })
}

function appendLine(
  state: ShardState,
  name: string,
  { draft, group }: { draft: Draft; group: CommitGroup },
): PendingRecord | Refusal {
  const agent = targetAgent(state, { agent: name, emerge: true, options: {} }, group)
  return 'code' in agent ? agent : group.append(agent, draft)
}

/** The lines of one agent, one behind the other; blank ones are passed over but counted. */
function linesOf(command: CommandOf<'ingestChunk'>, rules: DraftRules): ReadLine[] {
  const { chunk, agent } = command
  const lines: ReadLine[] = []
  let line = command.firstLine
  let from = 0
  while (from < chunk.length) {
    const found = chunk.indexOf(0x0a, from)
    const to = found === -1 ? chunk.length : found
    const bytes = chunk.subarray(from, to)
    if (!isBlank(bytes)) lines.push({ line, agent, draft: readBareDraft(bytes, rules) })
    from = to + 1
    line++
  }
  return lines
}

/** Lines `{agent, data, type?}` that the front thread has sent to this shard by their agents. */
function addressedLines(command: CommandOf<'ingestChunk'>, numbers: number[], rules: DraftRules): ReadLine[] {
  let at = 0
  return numbers.map((line) => {
    const found = command.chunk.indexOf(0x0a, at)
    const to = found === -1 ? command.chunk.length : found
    const parsed = readJson(command.chunk.subarray(at, to), limits.nestingDepthMax + 1)
    at = to + 1
    if ('code' in parsed) return { line, agent: '', draft: parsed }
    if (!isObject(parsed.value)) return { line, agent: '', draft: faulty('', 'Expected an object') }
    const { agent, ...record } = parsed.value
    if (typeof agent !== 'string')
      return { line, agent: '', draft: faulty('/agent', 'Expected the name of an agent') }
    return { line, agent, draft: draftOf(record, '', rules) }
  })
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
