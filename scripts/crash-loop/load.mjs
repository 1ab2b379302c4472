/*
 * The process that loads the server. It outlives the server, so what it remembers of calls sent and answered is the
 * journal that the data directory is checked against. It talks with the loop by messages:
 *   in  {url, seed, prefix}   begin on a server
 *   in  'stop'                the server is dead: answered by the journal once every call has ended
 */
import { OperationSource, freeAgent } from './operations.mjs'
import { send } from './request.mjs'
import { seededRandom } from './seeded-random.mjs'

/** Calls under way at once. */
const WIDTH = 12

/** @type {{stopped: boolean, ended: Promise<void>, journal: object[]} | undefined} */
let run

process.on('message', async (message) => {
  if (message === 'stop') {
    if (run === undefined) return
    run.stopped = true
    await run.ended
    process.send({ journal: run.journal })
  } else run = begin(message)
})
process.on('disconnect', () => process.exit(0))

function begin({ url, seed, prefix }) {
  const state = { stopped: false, ended: Promise.resolve(), journal: [] }
  const source = new OperationSource(seededRandom(seed), prefix)
  state.ended = load(url, source, state)
  return state
}

async function load(url, source, state) {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ name: freeAgent, zone: 'free' })
  // There from the round before, or else made now: either way its writes can go on.
  const made = await call(url, { method: 'POST', path: '/v1/agents', headers, body }).catch(() => undefined)
  // The server was gone before that: a call that is sent again later must not miss its agent.
  if (made === undefined) return
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
      // The server is gone: whether this call was carried out is what nobody knows.
      return
    }
    if (entry.answer.status < 300) learn(source, operation, entry.answer.body)
  }
}

async function call(url, request) {
  const { status, body } = await send(url, request)
  return { status, body }
}

/** What was answered can be changed by later operations; a target whose change was not answered never again. */
function learn(source, operation, body) {
  if (operation.kind === 'write' && operation.agents[0] === freeAgent) {
    source.targets.push({ hash: body.content_hash, seq: body.seq, deleted: false })
  } else if (operation.target !== undefined) {
    source.targets.push({ ...operation.target, deleted: !operation.target.deleted })
  }
}
