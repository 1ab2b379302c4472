import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { killAtExit, startServer } from '../child.mjs'
import { recordBody } from '../records.mjs'
import { createAgents, credential, startProduct } from '../server.mjs'
import { against } from '../statistics.mjs'

const subscriberScript = fileURLToPath(new URL('../generators/subscriber-process.mjs', import.meta.url))
const ceilingScript = fileURLToPath(new URL('../ceilings/stream-server.mjs', import.meta.url))
const AGENT = 'broadcast'
const SUBSCRIBERS = 1_000
/** Offers 500,000 deliveries a second, several times what one core of the ceiling writes. */
const EVENTS_PER_SECOND = 500
/** The ceiling gets only a part of the events, which shows its rate sooner. */
const CEILING_PART = 0.25
const TICK_MS = 20
/** As fast as the bare server. */
const LEVEL = { ratio: 1 }

/**
 * Events to 1,000 streams of one agent, written at a fixed rate, against a bare server that writes events of
 * the same size. Deliveries a second from the first write to the last delivery; each stream must receive each
 * event once.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function streams(bench) {
  const { plan, report } = bench
  const product = await startProduct(join(bench.directory, 'streams'))
  const ceiling = await startServer([ceilingScript])
  try {
    await createAgents(product.url, [AGENT])
    report(`${SUBSCRIBERS} streams`)
    const rounds = []
    for (let round = 1; round <= plan.rounds; round++) {
      const ofProduct = await fanOut(productStream(product.url), plan.streamEvents)
      const event = /id: [^\n]*\nevent: record\ndata: [^\n]*\n\n/.exec(ofProduct.sample)?.[0]
      if (event === undefined)
        throw new Error(`Expected an event of a record, got: ${ofProduct.sample.slice(0, 400)}`)
      const ofCeiling = await fanOut(ceilingStream(ceiling.url, event), plan.streamEvents * CEILING_PART)
      rounds.push({ value: ofProduct.perSecond, ceiling: ofCeiling.perSecond })
      report(`  round ${round}: ${Math.round(ofProduct.perSecond)}/s of ${Math.round(ofCeiling.perSecond)}/s`)
    }
    const also = { offered: SUBSCRIBERS * EVENTS_PER_SECOND }
    const name = `SSE to ${SUBSCRIBERS} subscribers`
    return [{ name, unit: 'deliveries/s', ...against(rounds), target: LEVEL, also }]
  } finally {
    await Promise.all([product.stop(), ceiling.stop()])
  }
}

/** The stream to subscribe to, and a function that writes one event. */
function productStream(url) {
  const write = (number) =>
    postOk(`${url}/v1/agents/${AGENT}/records`, JSON.stringify({ data: recordBody(number) }))
  return { url, path: `/v1/agents/${AGENT}/stream`, write }
}

function ceilingStream(url, event) {
  return { url, path: '/stream', write: () => postOk(`${url}/event`, event) }
}

async function postOk(url, body) {
  const headers = { ...credential, 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body })
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`Expected ${url} to accept an event, got ${response.status}`)
}

async function fanOut({ url, path, write }, events) {
  const child = fork(subscriberScript, { serialization: 'advanced' })
  killAtExit(child)
  const exited = once(child, 'exit')
  try {
    child.send({ url, path, subscribers: SUBSCRIBERS, headers: credential })
    await messageOf(child, exited)
    const startMs = Date.now()
    child.send({ expected: events })
    const answer = messageOf(child, exited)
    await writeAtRate(write, events)
    const { deliveries, least, most, lastAtMs, sample } = await answer
    if (least !== events || most !== events) {
      throw new Error(
        `Each of ${events} events was due once on each stream; a stream got ${least} to ${most}`,
      )
    }
    return { perSecond: (deliveries / (lastAtMs - startMs)) * 1_000, sample }
  } finally {
    // The process has already exited unless something failed.
    child.kill()
    await exited
  }
}

async function messageOf(child, exited) {
  const answered = await Promise.race([once(child, 'message'), exited.then(() => undefined)])
  if (answered === undefined) throw new Error('The process of the subscribers ended without an answer')
  return answered[0]
}

/** The events of a tick are written together; a late tick also writes the overdue events. */
async function writeAtRate(write, events) {
  const startMs = performance.now()
  const inFlight = []
  while (inFlight.length < events) {
    const elapsedMs = performance.now() - startMs
    const due = Math.min(events, Math.ceil(((elapsedMs + TICK_MS) / 1_000) * EVENTS_PER_SECOND))
    while (inFlight.length < due) inFlight.push(write(inFlight.length))
    await new Promise((resolve) => setTimeout(resolve, TICK_MS))
  }
  await Promise.all(inFlight)
}
