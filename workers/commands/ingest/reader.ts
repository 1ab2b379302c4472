import { asBuffer } from '../../../src/base/bytes.js'
import { limits } from '../../../src/base/limits/limits.js'
import { lineEnd } from '../../../src/base/line-splitter.js'
import type { Refusal } from '../../../src/base/errors.js'
import type { CommandOf } from '../../../src/protocol/messages.js'
import { readJson } from '../../../src/strand/json.js'
import { isBlank, memberText } from '../../../src/strand/json-scanner.js'
import { draftOf, faulty, isObject, readBareDraft, type DraftRules } from '../drafts.js'
import type { ReadLine } from './judge.js'
import { onceKey } from './written-once.js'
import type { Steps, Turn } from '../../shard/state.js'

export type IngestLines = CommandOf<'ingestChunk'>

type AgentLines = Required<Pick<IngestLines, 'chunk' | 'lineNumbers'>>

/** The lines of a chunk by the agent that they name, and the lines without a valid agent. */
export function* linesByAgent(
  command: IngestLines,
  turn: Turn,
): Steps<{ nameless: AgentLines | undefined; byAgent: Map<string, AgentLines> }> {
  const { chunk, lineNumbers = [] } = command
  const found = new Map<string, { parts: Uint8Array[]; lineNumbers: number[] }>()
  let at = 0
  for (const line of lineNumbers) {
    const next = lineEnd(chunk, at) + 1
    const bytes = chunk.subarray(at, next)
    at = next
    const name = nameOf(command, bytes)
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

function nameOf(command: IngestLines, bytes: Uint8Array): string {
  const largeAsText = command.integers === 'text'
  const parsed = readJson(bytes, limits.nestingDepthMax + 1, { largeAsText })
  if ('code' in parsed || !isObject(parsed.value)) return invalidLineAgent(command, bytes)
  const agent = parsed.value['agent']
  return typeof agent === 'string' ? agent : ''
}

/** The agent that keeps an invalid line: the front thread found its name by a lenient scan. */
function invalidLineAgent({ mode }: IngestLines, bytes: Uint8Array): string {
  return mode === 'keep' ? (memberText(asBuffer(bytes), 'agent') ?? '') : ''
}

interface RawLine {
  line: number
  bytes: Uint8Array
  /** The refusal of the front thread. */
  refusal?: Refusal | undefined
}

/** Whether a chunk is a single line that the front thread has refused. */
export function isOneLine({ refusals, lineNumbers }: IngestLines): boolean {
  return refusals !== undefined && lineNumbers === undefined
}

/** The lines of a chunk. Blank lines, which only occur in a chunk for one agent, are skipped but numbered. */
export function* rawLines(command: IngestLines): Generator<RawLine> {
  const { chunk, firstLine, lineNumbers, refusals } = command
  if (isOneLine(command)) {
    yield { line: firstLine, bytes: chunk, refusal: refusals?.[0] }
    return
  }
  let index = 0
  for (let from = 0; from < chunk.length; index++) {
    const to = lineEnd(chunk, from)
    const bytes = chunk.subarray(from, to)
    from = to + 1
    if (lineNumbers === undefined && isBlank(bytes)) continue
    yield { line: lineNumbers?.[index] ?? firstLine + index, bytes, refusal: refusals?.[index] }
  }
}

/**
 * Parses a line of one agent, or a line `{agent, data, type?}` that the front thread sent to the shard of its
 * agent.
 */
export function readLine(
  command: IngestLines,
  { line, bytes, refusal }: RawLine,
  rules: DraftRules,
): ReadLine {
  const { agent: named, lineNumbers } = command
  if (refusal !== undefined) return { line, agent: named, bytes, draft: refusal }
  const isBare = lineNumbers === undefined && command.addressed !== true
  if (isBare || command.once?.by === 'event') {
    const agent = lineNumbers === undefined ? named : (memberText(asBuffer(bytes), 'agent') ?? '')
    return withOnceKey(command, { line, agent, bytes, draft: readBareDraft(bytes, rules) })
  }
  const parsed = readJson(bytes, limits.nestingDepthMax + 1, { largeAsText: rules.largeAsText === true })
  const none = { line, agent: invalidLineAgent(command, bytes), bytes }
  if ('code' in parsed) return { ...none, draft: parsed }
  if (!isObject(parsed.value)) return { ...none, draft: faulty('', 'Expected an object') }
  const { agent, ...record } = parsed.value
  if (typeof agent !== 'string') return { ...none, draft: faulty('/agent', 'Expected the name of an agent') }
  return withOnceKey(command, { line, agent, bytes, draft: draftOf(record, '', rules) })
}

/** Adds the key of the line, if each line is written once. */
function withOnceKey({ once }: IngestLines, read: ReadLine): ReadLine {
  if (once === undefined || 'code' in read.draft) return read
  const key = onceKey(once, read.agent, read.draft)
  return 'code' in key ? { ...read, draft: key } : { ...read, once: key }
}
