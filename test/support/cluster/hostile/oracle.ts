import { verifyExport } from '../../../../src/proof/node/verify-export.js'
import { type Answered, askNode, posting } from '../rounds/cluster-client.js'
import {
  agents,
  type Answers,
  type Known,
  look,
  patienceMs,
  recordLines,
  serverStrands,
  strandOf,
  whoami,
} from './history.js'

/*
 * The one rule for what a node does on tables that were changed: it serves the truth, or refuses. The truth is what clients were
 * answered before.
 */

/** What may be served. */
export type Allowed =
  /** What clients were answered. */
  | 'the truth'
  /** The logs end earlier, and this node was never told that they went on: then what they have, and nothing else. */
  | 'an earlier truth'

/** What a node is held to. */
export interface Belief {
  known: Known
  /** What clients were answered. */
  truth: Answers
  /** What they had been answered before some of it was written, erased and revoked. */
  earlier: Answers
  allowed: Allowed
}

const { stringify } = JSON
/** How many of its lies are told of. */
const SHOWN = 3

/** A node refuses by 503, or does not answer because it has ended. */
export function isRefusal(answer: Answered | undefined): boolean {
  return answer === undefined || answer.status === 503
}

/** What a node says that is not true. */
export async function lies(url: string, { known, truth, earlier, allowed }: Belief): Promise<string[]> {
  const now = await look(url, known)
  const found: string[] = []
  for (const [question, answer] of now) {
    const before = truth.get(question)
    if (answer === undefined || before === undefined || isRefusal(answer)) continue
    const isTrue =
      allowed === 'the truth'
        ? isAlike(question, before, answer)
        : isEarlier(question, answer, [before, earlier.get(question)])
    if (!isTrue) found.push(`${question}: ${about(answer)}, and not ${about(before)}`)
  }
  if (found.length > SHOWN) return [...found.slice(0, SHOWN), `and ${found.length - SHOWN} more of this kind`]
  if (found.length > 0) return found
  return allowed === 'the truth' ? continued(url, truth) : []
}

function about({ status, text }: Answered): string {
  return `${status} ${text.slice(0, LINE)}`
}

/** Problems have an id each. */
function isAlike(question: string, before: Answered, now: Answered): boolean {
  if (before.status !== now.status) return false
  if (before.status >= 400) return before.body?.code === now.body?.code
  return grows(question) ? isBeginning(recordLines(before), recordLines(now)) : before.text === now.text
}

/** As it was at some moment before the end. */
function isEarlier(question: string, now: Answered, moments: readonly (Answered | undefined)[]): boolean {
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

/** Strands of the server grow by themselves. */
function grows(question: string): boolean {
  return serverStrands.some((name) => question === strandOf(name))
}

function isBeginning(some: readonly string[], all: readonly string[]): boolean {
  return some.every((line, at) => line === all[at])
}

/** Writes one record more to each agent. @returns where that is no continuation of what clients have */
async function continued(url: string, truth: Answers): Promise<string[]> {
  const found: string[] = []
  for (const agent of agents) {
    const written = await askNode(
      url,
      posting(`/v1/agents/${agent}/records`, { data: { text: 'and on' } }),
      patienceMs,
    )
    if (isRefusal(written)) continue
    const before = truth.get(strandOf(agent))
    const after = await askNode(url, { method: 'GET', path: strandOf(agent) }, patienceMs)
    if (before === undefined || after === undefined || isRefusal(after)) continue
    const [had, has] = [recordLines(before), recordLines(after)]
    if (written?.status !== 201 || written.body?.seq < had.length || !isBeginning(had, has))
      found.push(
        `The next record of ${agent}, of which clients have ${had.length}: ${written && about(written)}`,
      )
    const verified = await verifyExport(after.text.trimEnd().split('\n'), {
      publicKey: JSON.parse(before.text.split('\n')[0] ?? '').public_key,
    })
    if (!verified.ok) found.push(`The export of ${agent} does not verify: ${verified.reason}`)
  }
  return found
}

/** What a process says that is no refusal: it has crashed, or an error of its own came before the one that was to be told. */
export function wrongWords(said: string, signal: NodeJS.Signals | null = null): string[] {
  const found: string[] = []
  // It kills itself where a thread is in the middle of a write to LMDB.
  if (signal !== null && signal !== 'SIGKILL') found.push(`It ended by ${signal}`)
  const bug = said
    .split('\n')
    .find((line) => /^\s+at .*:\d+:\d+\)?$|\b(Range|Type|Reference)Error\b/.test(line))
  if (bug !== undefined) found.push(`It says no reason but an error of its own: ${bug.slice(0, LINE)}`)
  return found
}

/** How much of a line is shown. */
const LINE = 300

/**
 * The lines by which a process says why it does not serve: those of its log that are errors, and plain text. Warnings are none, as a
 * node gives some and goes on.
 */
export function reasons(said: string): string[] {
  return said.split('\n').filter((line) => {
    if (line.startsWith('{')) return /^\{"level":"(error|fatal)"/.test(line)
    return line.trim() !== '' && !line.startsWith('warning:')
  })
}
