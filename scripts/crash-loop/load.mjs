/*
 * The process that loads the server. It outlives the server, so its record of calls and answers is the
 * journal against which the data directory is checked. Messages with the loop:
 *
 * - {url, seed, prefix, acting}: start on a server; `acting`: with actors, which keep their state across
 *   rounds. Answered by {begun} after the first call.
 * - 'stop': the server was killed. Answered by {journal, acted} after the last call.
 * - {look: url, whole}: the server was restarted. Answered by {faults} of the actors.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Cast } from './actors/cast.mjs'
import { OperationSource, freeAgent } from './operations.mjs'
import { send } from './request.mjs'
import { seededRandom } from './seeded-random.mjs'

/** Parallel calls. */
const WIDTH = 12

/** The pause between two calls, milliseconds: the load tests order, not throughput. */
const REST_MS = 8

const cast = new Cast()

/**
 * @type {{stopped: boolean, begun: Promise<void>, ended: Promise<void>, journal: object[], acted: number} |
 * undefined}
 */
let run

process.on('message', async (message) => {
  if (message === 'stop') {
    if (run === undefined) return
    run.stopped = true
    await run.ended
    process.send({ journal: run.journal, acted: run.acted })
  } else if (message.look !== undefined) {
    process.send({ faults: await cast.check(message.look, message.whole) })
  } else {
    run = begin(message)
    await run.begun
    process.send({ begun: true })
  }
})
process.on('disconnect', () => process.exit(0))

function begin({ url, seed, prefix, acting = false }) {
  let resolve = () => {}
  const begun = new Promise((settled) => (resolve = settled))
  const state = { stopped: false, begun, ended: Promise.resolve(), journal: [], acted: 0, hasEnded: resolve }
  const source = new OperationSource(seededRandom(seed), prefix)
  const loading = load(url, source, state)
  const casting = acting ? act(url, seed, state) : undefined
  state.ended = Promise.all([loading, casting]).then(() => undefined)
  return state
}

async function act(url, seed, state) {
  state.acted = await cast.act(url, { seed, stopped: () => state.stopped })
}

async function load(url, source, state) {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ name: freeAgent, zone: 'free' })
  // Created now or in an earlier round: in both cases its writes can continue.
  const created = await call(url, { method: 'POST', path: '/v1/agents', headers, body }).catch(
    () => undefined,
  )
  // The server ended before that: a repeated call must not miss its agent.
  if (created === undefined) return state.hasEnded()
  await Promise.all(Array.from({ length: WIDTH }, () => loadOne(url, source, state)))
}

async function loadOne(url, source, state) {
  while (!state.stopped) {
    const operation = source.next()
    const entry = { operation, answer: undefined }
    state.journal.push(entry)
    try {
      entry.answer = await call(url, operation.request)
    } catch {
      // The server was killed: this call may or may not have been executed.
      return
    } finally {
      state.hasEnded()
    }
    if (entry.answer.status < 300) addTargets(source, operation, entry.answer.body)
    await pause(REST_MS)
  }
}

async function call(url, request) {
  const { status, body } = await send(url, request)
  return { status, body }
}

/**
 * Later operations may change records whose writes were confirmed, but not a target whose change was not
 * confirmed.
 */
function addTargets(source, operation, body) {
  if (operation.kind === 'write' && operation.agents[0] === freeAgent) {
    source.targets.push({ hash: body.content_hash, seq: body.seq, deleted: false })
  } else if (operation.target !== undefined) {
    source.targets.push({ ...operation.target, deleted: !operation.target.deleted })
  }
}
