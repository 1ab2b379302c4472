/*
 * The process that loads the server. It outlives the server, so what it remembers of calls sent and answered is the
 * journal that the data directory is checked against. It talks with the loop by messages:
 *   in  {url, seed, prefix, acting}   begin on a server; acting: with actors, who remember from round to round.
 *                                     Answered by {begun} when the first call has ended
 *   in  'stop'                        the server is dead: answered by {journal, acted} once every call has ended
 *   in  {look: url, whole}            the server runs again: answered by {faults} of what the actors find
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Cast } from './actors/cast.mjs'
import { OperationSource, freeAgent } from './operations.mjs'
import { send } from './request.mjs'
import { seededRandom } from './seeded-random.mjs'

/** Calls in flight at once. */
const WIDTH = 12

/** How long each rests between two calls, milliseconds: the load is there for its order, not for its mass. */
const REST_MS = 8

const cast = new Cast()

/** @type {{stopped: boolean, begun: Promise<void>, ended: Promise<void>, journal: object[], acted: number} | undefined} */
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
  // There from the round before, or else made now: either way its writes can go on.
  const made = await call(url, { method: 'POST', path: '/v1/agents', headers, body }).catch(() => undefined)
  // The server was gone before that: a call that is sent again later must not miss its agent.
  if (made === undefined) return state.hasEnded()
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
      // The server was killed: this call may have been carried out or not.
      return
    } finally {
      state.hasEnded()
    }
    if (entry.answer.status < 300) learn(source, operation, entry.answer.body)
    await pause(REST_MS)
  }
}

async function call(url, request) {
  const { status, body } = await send(url, request)
  return { status, body }
}

/**
 * Later operations can change records whose writes were answered, but never again a target whose change was not
 * answered.
 */
function learn(source, operation, body) {
  if (operation.kind === 'write' && operation.agents[0] === freeAgent) {
    source.targets.push({ hash: body.content_hash, seq: body.seq, deleted: false })
  } else if (operation.target !== undefined) {
    source.targets.push({ ...operation.target, deleted: !operation.target.deleted })
  }
}
