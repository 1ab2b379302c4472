import { setTimeout as pause } from 'node:timers/promises'
import { until } from './nodes.mjs'
import { credential } from './server.mjs'
import { median, rounded } from './statistics.mjs'

/** Before a write that follows one that failed, so that a server that refuses at once is not asked without end. */
const PAUSE_MS = 5
/** Longer than any server makes a write wait. */
const ANSWER_MS_MAX = 30_000
/** What happens is over when a write has been answered, and so long has passed. */
const SETTLED_MS = 1_000

/**
 * What writers found while something happened.
 * @typedef {{longestMs: number, others: string[]}} Gap `longestMs`: the longest time between two answered writes of one
 *   writer; `others`: what was answered in place of 201
 */

/**
 * Has writers write without a pause, one write each at a time, while something happens.
 * @param {{urls: string[], agents: string[]}} writers each of an agent, at one address after the other
 * @param {() => Promise<unknown>} happen
 * @returns {Promise<Gap>}
 */
export async function gapOf({ urls, agents }, happen) {
  const writers = agents.map((agent) => startWriter(urls, agent))
  const goOn = async () => {
    for (const writer of writers) await writer.goesOn()
    await pause(SETTLED_MS)
  }
  try {
    await goOn()
    await happen()
    await goOn()
  } finally {
    for (const writer of writers) await writer.end()
  }
  return {
    longestMs: Math.max(...writers.map((writer) => writer.longestMs)),
    others: writers.flatMap((writer) => writer.others),
  }
}

/**
 * The figure of what was found in some rounds.
 * @param {string} when
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
 * What was found in one round, for a reader.
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
  const writer = { isOver: false, longestMs: 0, others: [], goesOn, end }
  /** Of the write that was answered last: when it was begun, and when it was answered. */
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

  /** Resolves when a write was answered that began later than now. */
  async function goesOn() {
    const sinceMs = performance.now()
    await until('a write to be answered', () => begunMs > sinceMs)
  }

  async function end() {
    writer.isOver = true
    await running
  }
}

/** What a write was answered: its status, or why there is none. */
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
