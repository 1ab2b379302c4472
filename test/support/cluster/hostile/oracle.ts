import { verifyExport } from '../../../../src/proof/node/verify-export.js'
import { type LoadAnswer, requestNode, posting } from '../rounds/cluster-client.js'
import {
  agents,
  type Answers,
  type Known,
  look,
  answerTimeoutMs,
  recordLines,
  serverStrands,
  strandOf,
  whoami,
} from './history.js'

/*
 * The single rule for a node with changed tables: it serves the truth, or refuses. The truth is what clients
 * were answered before.
 */

/** What a node may serve. */
export type Allowed =
  /** The answers that clients have received. */
  | 'the truth'
  /** The logs end earlier, and this node has never seen more: exactly what they contain. */
  | 'an earlier truth'

/** The expectations for a node. */
export interface Belief {
  known: Known
  /** The answers that clients have received. */
  truth: Answers
  /** Their answers before the last writes, erasures and revocations. */
  earlier: Answers
  allowed: Allowed
  /** Questions about strands that were refused after further writes, so that these may have grown. */
  refused?: ReadonlySet<string>
}

const { stringify } = JSON
/** Number of false answers that are reported. */
const SHOWN = 3

/** A node refuses with 503, or does not answer because it has ended. */
export function isRefusal(answer: LoadAnswer | undefined): boolean {
  return answer === undefined || answer.status === 503
}

/** The false answers of a node. */
export async function falseAnswers(
  url: string,
  { known, truth, earlier, allowed, refused }: Belief,
): Promise<string[]> {
  const now = await look(url, known)
  const found: string[] = []
  for (const [question, answer] of now) {
    const before = truth.get(question)
    if (answer === undefined || before === undefined || isRefusal(answer)) continue
    const isTrue =
      allowed === 'the truth'
        ? isAlike(before, answer, grows(question) || refused?.has(question) === true)
        : isEarlier(question, answer, [before, earlier.get(question)])
    if (!isTrue) found.push(`${question}: ${shorten(answer)}, and not ${shorten(before)}`)
  }
  if (found.length > SHOWN) return [...found.slice(0, SHOWN), `and ${found.length - SHOWN} more of this kind`]
  if (found.length > 0) return found
  return allowed === 'the truth' ? checkContinuation(url, truth) : []
}

function shorten({ status, text }: LoadAnswer): string {
  return `${status} ${text.slice(0, LINE)}`
}

/** Problems differ in their ids. @param grown whether records may have been added */
function isAlike(before: LoadAnswer, now: LoadAnswer, grown: boolean): boolean {
  if (before.status !== now.status) return false
  if (before.status >= 400) return before.body?.code === now.body?.code
  return grown ? isBeginning(recordLines(before), recordLines(now)) : before.text === now.text
}

/** Whether an answer was true at some earlier moment. */
function isEarlier(question: string, now: LoadAnswer, moments: readonly (LoadAnswer | undefined)[]): boolean {
  if (now.status >= 400 || question.startsWith(whoami) || grows(question)) return true
  const lines = moments.map((moment) => (moment === undefined ? [] : recordLines(moment)))
  const known = recordLines(now).every((line, at) => lines.some((all) => all[at] === line))
  const { payload } = now.body ?? {}
  const isOfRecord = question.includes('/records/') && payload !== undefined
  return (
    known &&
    (!isOfRecord || moments.some((moment) => stringify(moment?.body?.payload) === stringify(payload)))
  )
}

/** The server appends to its strands. */
function grows(question: string): boolean {
  return serverStrands.some((name) => question === strandOf(name))
}

function isBeginning(some: readonly string[], all: readonly string[]): boolean {
  return some.every((line, at) => line === all[at])
}

/** Writes one more record to each agent. @returns where that does not continue what clients have */
async function checkContinuation(url: string, truth: Answers): Promise<string[]> {
  const found: string[] = []
  for (const agent of agents) {
    const written = await requestNode(
      url,
      posting(`/v1/agents/${agent}/records`, { data: { text: 'one more' } }),
      answerTimeoutMs,
    )
    if (isRefusal(written)) continue
    const before = truth.get(strandOf(agent))
    const after = await requestNode(url, { method: 'GET', path: strandOf(agent) }, answerTimeoutMs)
    if (before === undefined || after === undefined || isRefusal(after)) continue
    const [knownRecords, records] = [recordLines(before), recordLines(after)]
    if (
      written?.status !== 201 ||
      written.body?.seq < knownRecords.length ||
      !isBeginning(knownRecords, records)
    )
      found.push(
        `The next record of ${agent}, of which clients have ${knownRecords.length}: ${written && shorten(written)}`,
      )
    const verified = await verifyExport(after.text.trimEnd().split('\n'), {
      publicKey: JSON.parse(before.text.split('\n')[0] ?? '').public_key,
    })
    if (!verified.ok) found.push(`The export of ${agent} does not verify: ${verified.reason}`)
  }
  return found
}

/**
 * Output of a process that is not a refusal: it has crashed, or an internal error came before the expected
 * reason.
 */
export function processFaults(said: string, signal: NodeJS.Signals | null = null): string[] {
  const found: string[] = []
  // The process kills itself if a thread is writing to LMDB.
  if (signal !== null && signal !== 'SIGKILL') found.push(`It ended by ${signal}`)
  const bug = said
    .split('\n')
    .find((line) => /^\s+at .*:\d+:\d+\)?$|\b(Range|Type|Reference)Error\b/.test(line))
  if (bug !== undefined) found.push(`It reports an internal error instead of a reason: ${bug.slice(0, LINE)}`)
  return found
}

/** Characters of a line that are shown. */
const LINE = 300

/**
 * The lines in which a process reports why it does not serve: errors in its log, and plain text. Warnings do
 * not count, because a node continues after them; nor that it reads a log again, because the cause follows.
 */
export function reasons(said: string): string[] {
  return said.split('\n').filter((line) => {
    if (line.startsWith('{'))
      return /^\{"level":"(error|fatal)"/.test(line) && !line.includes('reading it again')
    return line.trim() !== '' && !line.startsWith('warning:')
  })
}
