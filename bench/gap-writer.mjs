import { setTimeout as pause } from 'node:timers/promises'
import { until } from './nodes.mjs'
import { credential } from './server.mjs'
import { median, rounded } from './statistics.mjs'

/** The pause after a failed write, so that a server that refuses immediately is not flooded with requests. */
const PAUSE_MS = 5
/** Longer than any server delays the answer to a write. */
const ANSWER_MS_MAX = 30_000
/** The writers continue for this long after the event. */
const QUIET_MS = 1_000

/**
 * The longest gap of some writers during an event.
 * @typedef {{longestMs: number, others: string[]}} Gap `longestMs`: the longest time between two answered
 *   writes of one writer; `others`: the answers other than 201
 */

/**
 * Lets writers write without a pause, one write each at a time, while an event happens.
 * @param {{urls: string[], agents: string[]}} writers one for each agent; a writer tries one URL after
 * another
 * @param {() => Promise<unknown>} event causes the event, such as the kill of a node
 * @returns {Promise<Gap>}
 */
export async function gapOf({ urls, agents }, event) {
  const writers = agents.map((agent) => startWriter(urls, agent))
  const awaitWrites = async () => {
    for (const writer of writers) await writer.nextWrite()
    await pause(QUIET_MS)
  }
  try {
    await awaitWrites()
    await event()
    await awaitWrites()
  } finally {
    for (const writer of writers) await writer.end()
  }
  return {
    longestMs: Math.max(...writers.map((writer) => writer.longestMs)),
    others: writers.flatMap((writer) => writer.others),
  }
}

/**
 * The figure of the gaps of several rounds.
 * @param {string} when describes the event in the figure's name
 * @param {Gap[]} gaps one a round
 * @param {number} below the target, milliseconds
 * @returns {import('./report.mjs').Measured} `other_answers`: of all rounds together
 */
export function gapFigure(when, gaps, below) {
  const times = gaps.map(({ longestMs }) => longestMs)
  const others = gaps.flatMap((gap) => gap.others)
  return {
    name: `time until a write is answered, ${when}`,
    value: median(times),
    unit: 'ms',
    target: { below },
    also: { most_ms: rounded(Math.max(...times)), other_answers: others.length },
  }
}

/**
 * The gap of one round as a text.
 * @param {Gap} gap
 */
export function gapText({ longestMs, others }) {
  const kinds = [...new Set(others)].map(
    (kind) => `${others.filter((one) => one === kind).length} of ${kind}`,
  )
  const answers = kinds.length === 0 ? 'no other answer' : `other answers: ${kinds.join(', ')}`
  return `${Math.round(longestMs)} ms until a write is answered, ${answers}`
}

function startWriter(urls, agent) {
  const writer = { isOver: false, longestMs: 0, others: [], nextWrite, end }
  /** When the last answered write began, and when it was answered. */
  let [begunMs, answeredMs] = [-Infinity, Infinity]
  const running = write()
  return writer

  async function write() {
    for (let at = 0; !writer.isOver; at++) {
      const startedMs = performance.now()
      const answer = await writeOne(urls[at % urls.length], agent)
      if (answer === '201') {
        writer.longestMs = Math.max(writer.longestMs, performance.now() - answeredMs)
        answeredMs = performance.now()
        begunMs = startedMs
      } else {
        writer.others.push(answer)
        await pause(PAUSE_MS)
      }
    }
  }

  /** Resolves when a write that began after this call is answered. */
  async function nextWrite() {
    const sinceMs = performance.now()
    await until('a write to be answered', () => begunMs > sinceMs)
  }

  async function end() {
    writer.isOver = true
    await running
  }
}

/** Returns the status of the answer to a write, or the error if there is no answer. */
async function writeOne(url, agent) {
  try {
    const response = await fetch(`${url}/v1/collections/${agent}/records`, {
      method: 'POST',
      headers: { ...credential, 'content-type': 'application/json' },
      body: JSON.stringify({ data: { text: 'over' } }),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    })
    await response.arrayBuffer()
    return String(response.status)
  } catch (error) {
    return String(error.cause?.code ?? error.name)
  }
}
