import { assert } from '../../../src/base/assert.js'
import type { Refusal } from '../../../src/base/errors.js'
import type { CommitGroup, Draft } from '../../shard/commit-group.js'
import type { PendingRecord } from '../../store/write-set.js'
import { ingestRules, LineJudge, type Duplicate, type ReadLine, type LineDecision } from './judge.js'
import { answeredBefore } from '../idempotency/answers.js'
import { rawLines, readLine, type IngestLines } from './reader.js'
import { Tally } from './tally.js'
import { notAllowed } from '../../mutations/row-access.js'
import { type Decision, type ShardState, findAgent, type Steps, type Turn } from '../../shard/state.js'
import { isStillValid, signAhead, signedInOneGroupMax, type SignedAhead } from './sign-ahead.js'
import { storeWritten } from './written-once.js'
import { makeAgent } from '../../shard/new-agent.js'
import { targetAgent } from '../records.js'

/** A chunk and its parsed lines. */
export interface ReadLines {
  command: IngestLines
  lines: readonly ReadLine[]
}

/** The maximum number of lines between two writes, and so between two checks of the time of the turn. */
const PIECE_LINES = 64

/**
 * Appends the lines of a chunk over several turns (docs/adr/0027-turns-of-a-shard.md). The first line of an
 * agent creates it.
 */
export function* ingestPieces(state: ShardState, command: IngestLines, turn: Turn): Steps<Decision> {
  const tally = new Tally()
  const rules = ingestRules(state, command)
  const targetFault = targetRefusal(state, command, turn.group)
  if (targetFault !== undefined) return targetFault
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

/**
 * Parses and judges the lines of a chunk over several turns; the verdicts are checked again when the lines
 * are written.
 */
export function* readLines(state: ShardState, command: IngestLines, turn: Turn): Steps<ReadLines | Refusal> {
  const refusal = targetRefusal(state, command, turn.group)
  if (refusal !== undefined) return refusal
  const rules = ingestRules(state, command)
  const lines: ReadLine[] = []
  let judge = new LineJudge(state, command, turn.group)
  for (const raw of rawLines(command)) {
    const line = readLine(command, raw, rules)
    judge.verdict(line)
    lines.push(line)
    if (!turn.spent()) continue
    yield
    judge = new LineJudge(state, command, turn.group)
  }
  return { command, lines }
}

/**
 * Chains and signs lines that will be written in one group.
 * @returns undefined if there are few lines, which the group then signs, or if one is invalid, so that none
 * is written
 */
export function* signLines(
  state: ShardState,
  reads: readonly ReadLines[],
  turn: Turn,
): Steps<SignedAhead | undefined> {
  const drafts: { agent: string; draft: Draft }[] = []
  for (const { command, lines } of reads) {
    const judge = new LineJudge(state, command, turn.group)
    for (const line of lines) {
      const draft = judge.verdict(line)
      const { agent, kept } = line
      if (isDraft(draft)) {
        drafts.push({ agent, draft })
        if (draft === kept?.draft) for (const part of kept.rest) drafts.push({ agent, draft: part })
      } else if ('code' in draft && isAllOrNone(command)) return undefined
    }
  }
  return drafts.length > signedInOneGroupMax ? yield* signAhead(state, drafts, turn) : undefined
}

/** The records that were signed ahead; undefined if they can no longer be written as they are. */
export function stillSigned(
  state: ShardState,
  { reads, ahead }: { reads: readonly ReadLines[]; ahead: SignedAhead | undefined },
  group: CommitGroup,
): SignedAhead | undefined {
  if (ahead === undefined || !isStillValid(state, ahead, group)) return undefined
  const isUnchanged = reads.every(({ command, lines }) => {
    const judge = new LineJudge(state, command, group)
    return lines.every((line) => {
      const verdict = judge.verdict(line)
      return isDraft(verdict) ? ahead.records.has(verdict) : !isSigned(ahead, line)
    })
  })
  return isUnchanged ? ahead : undefined
}

function isDraft(verdict: LineDecision): verdict is Draft {
  return 'body' in verdict
}

function isValid(verdict: LineDecision): boolean {
  return !('code' in verdict)
}

function isSigned(ahead: SignedAhead, { draft, kept }: ReadLine): boolean {
  return [draft, kept?.draft].some((one) => one !== undefined && isDraft(one) && ahead.records.has(one))
}

/** Whether one invalid line prevents the whole chunk from being written. */
export function isAllOrNone({ mode }: IngestLines): boolean {
  return mode === 'reject' || mode === 'check'
}

/** Whether every line may be written in a commit group. */
export function areAllValid(state: ShardState, { command, lines }: ReadLines, group: CommitGroup): boolean {
  const judge = new LineJudge(state, command, group)
  return lines.every((line) => isValid(judge.verdict(line)))
}

/** Writes parsed lines in one group. @param ahead the records that were signed ahead and are still valid */
export function writeRead(
  state: ShardState,
  read: ReadLines,
  { group, ahead }: { group: CommitGroup; ahead: SignedAhead | undefined },
): Decision {
  const tally = new Tally()
  return writeLines(state, { ...read, tally, ahead }, group) ?? (() => tally.outcome())
}

/** The refusal of a whole chunk, because of its agent. */
function targetRefusal(state: ShardState, command: IngestLines, group: CommitGroup): Refusal | undefined {
  const { access, options, agent } = command
  if (options.ifMatch === undefined && (access === undefined || agent === '')) return undefined
  const target = targetAgent(state, { ...command, emerge: false }, group)
  return 'code' in target ? target : undefined
}

/** Writes lines, or counts them in mode `check`. @returns a refusal of all lines */
export function writeLines(
  state: ShardState,
  { command, lines, tally, ahead }: ReadLines & { tally: Tally; ahead?: SignedAhead | undefined },
  group: CommitGroup,
): Refusal | undefined {
  const refusal = tally.written > 0 ? undefined : targetRefusal(state, command, group)
  if (refusal !== undefined) return refusal
  const judge = new LineJudge(state, command, group)
  const verdicts = lines.map((line) => judge.verdict(line))
  const writes = !isAllOrNone(command) || (command.mode === 'reject' && verdicts.every(isValid))
  // All or none: reserve a reading for every line and one for the genesis record of its agent.
  const reserves = command.mode === 'reject' && writes && ahead === undefined
  const skew = reserves ? group.reserve(2 * lines.length) : undefined
  if (skew !== undefined) return skew
  for (const [index, line] of lines.entries()) {
    const verdict = verdicts[index] ?? notAllowed
    if ('code' in verdict) tally.reject(line, verdict)
    else if (!writes) tally.count(line.agent)
    else writeLine(state, { line, verdict, tally, ahead }, group)
  }
  return undefined
}

function writeLine(
  state: ShardState,
  {
    line,
    verdict,
    tally,
    ahead,
  }: { line: ReadLine; verdict: Draft | Duplicate; tally: Tally; ahead: SignedAhead | undefined },
  group: CommitGroup,
): void {
  const { kept } = line
  const isKept = isDraft(verdict) ? verdict === kept?.draft : verdict.refusal !== undefined
  const once = isKept ? kept?.once : line.once
  const draft = isKept ? kept?.draft : line.draft
  if (draft === undefined || 'code' in draft) return
  // A line that repeats an earlier one is on disk only if the earlier one was written.
  const isOnDisk = !isDraft(verdict) && once !== undefined && answeredBefore(state, group, once) !== undefined
  if (isOnDisk) {
    tally.duplicate(line, isKept ? kept?.refusal : undefined)
    return
  }
  const parts = isKept && kept !== undefined ? kept.rest : noParts
  // The parts of a line are written together or not at all; a new agent needs one more record.
  const skew = parts.length > 0 && ahead === undefined ? group.reserve(parts.length + 2) : undefined
  const record = skew ?? appendLine(state, line.agent, { draft, group, ahead })
  if ('code' in record) {
    tally.reject(line, record)
    return
  }
  const seqs = [record.seq, record.seq + parts.length] as const
  if (once !== undefined) storeWritten(state, group, { key: once, seqs })
  if (isKept && kept !== undefined) tally.keep(line, kept.refusal, record)
  else tally.accept(line.agent, record)
  for (const part of parts) {
    const more = appendLine(state, line.agent, { draft: part, group, ahead })
    assert(!('code' in more), 'every part of a line can be appended')
    tally.reach(line.agent, more)
  }
}

const noParts: readonly Draft[] = []

function appendLine(
  state: ShardState,
  name: string,
  { draft, group, ahead }: { draft: Draft; group: CommitGroup; ahead: SignedAhead | undefined },
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
