/*
 * Two sides of a probe (probe.ts). As a thread of the test process it sends requests to a server, and reports how much
 * processor time the server's threads used while each request waited. Preloaded into the server (`node --import`), it notes
 * the long turns of the event loops of its front and its shards. Both judge nothing: probe.ts compares the times with the
 * control.
 */
import { appendFileSync, existsSync, openSync, readFileSync, readlinkSync, readSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import threads, { isMainThread, parentPort, workerData } from 'node:worker_threads'

/** How long the timer runs that ends a turn, and the shortest turn that is noted, milliseconds. */
const TURN_MS = 2
const NOTED_MS = 10

/** Memory of the control work: more than a first-level cache, as a server uses it. */
const table = new Uint32Array(1 << 16)
let state = 1

/** Does `steps` of work whose size never changes. */
export function work(steps) {
  for (let n = 0; n < steps; n++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const at = (state ^ table[state & 0xffff]) & 0xffff
    table[at] = (table[at] + n) >>> 0
  }
}

if (workerData?.probe !== undefined) await probe(workerData.probe)
else if (isMainThread || workerData?.kind === 'front') noteTurns('front')
else if (workerData?.settings?.shard !== undefined) noteTurns('shard')

/**
 * Notes how much processor time this thread uses in one turn, where that is much: for so long it serves nothing else. The thread measures itself, so it does not matter when another thread gets a processor.
 */
function noteTurns(kind) {
  const dataDir = process.env.SERVICE_DATA_DIR
  const note = (what, text) => appendFileSync(join(dataDir, `${what}-of-${kind}`), `${text}\n`)
  const statistics = openSync('/proc/thread-self/schedstat', 'r')
  const bytes = Buffer.alloc(80)
  const usedNow = () => {
    const length = readSync(statistics, bytes, 0, bytes.length, 0)
    return Number(bytes.toString('latin1', 0, length).split(' ')[0]) / 1e6
  }
  let usedMs = usedNow()
  let isNamed = false
  const endTurn = () => {
    const beforeMs = usedMs
    usedMs = usedNow()
    const ms = usedMs - beforeMs
    // The server begins in an empty directory, and leaves format.json in it.
    if (!isNamed && existsSync(join(dataDir, 'format.json'))) {
      isNamed = true
      note('threads', basename(readlinkSync('/proc/thread-self')))
    }
    if (isNamed && ms >= NOTED_MS) note('turns', JSON.stringify({ ms, atMs: Date.now() - ms / 2 }))
  }
  const again = () => {
    endTurn()
    setTimeout(again, TURN_MS).unref()
  }
  again()
  // While it has much to do, a shard takes further commands without going back to its event loop.
  const { receiveMessageOnPort } = threads
  threads.receiveMessageOnPort = (port) => {
    endTurn()
    return receiveMessageOnPort(port)
  }
  syncBuiltinESMExports()
}

/** Probes a server until it receives a message. */
async function probe({ url, pid, rootKey, dataDir, agents, controlSteps }) {
  const connection = new Agent({ keepAlive: true, maxSockets: 1 })
  const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' }

  /** The scheduler's figures: milliseconds of a processor used, and milliseconds ready but without a processor. */
  function scheduled(path) {
    try {
      const [usedNs, delayedNs] = readFileSync(path, 'utf8').split(' ')
      return { usedMs: Number(usedNs) / 1e6, delayedMs: Number(delayedNs) / 1e6 }
    } catch {
      return { usedMs: 0, delayedMs: 0 }
    }
  }

  const ownDelayMs = () => scheduled('/proc/thread-self/schedstat').delayedMs
  const of = (thread) => scheduled(`/proc/${pid}/task/${thread}/schedstat`)
  const usedMs = (thread) => of(thread).usedMs

  /** Memory that is resident and the process's own, bytes; 0 after its end. */
  function memoryBytes() {
    try {
      return Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
    } catch {
      return 0
    }
  }

  function send(method, path, body) {
    return new Promise((resolve) => {
      const sent = request(url + path, { method, agent: connection, headers }, (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode ?? 0))
        response.on('error', () => resolve(0))
      })
      sent.on('error', () => resolve(0))
      sent.end(body)
    })
  }

  const write = (agent) => send('POST', `/v1/collections/${agent}/records`, '{"data":{"probe":true}}')

  /**
   * Writes twice to each agent. The event loops of the front and of the shards have then made a round since their earlier
   * turns, and so have noted those.
   */
  async function passAllThreads() {
    for (const agent of [...agents, ...agents]) await write(agent)
  }

  const seen = { front: [], shard: [], controls: [], failed: [], memoryBytes: 0 }

  /**
   * Carries out a request. Gives its status, and the longest that one of `threads` can have kept it waiting. Where this thread,
   * or one that passes the answer on, waited for a processor, the answer may have been ready: what the server did in that time
   * is not counted.
   */
  async function wait(threads, passing, act) {
    const before = threads.map(usedMs)
    const delayedMs = () => ownDelayMs() + passing.reduce((sum, thread) => sum + of(thread).delayedMs, 0)
    const earlierDelayMs = delayedMs()
    const [startedMs, startedAtMs] = [performance.now(), Date.now()]
    const status = await act()
    const waitedMs = performance.now() - startedMs
    const lateMs = delayedMs() - earlierDelayMs
    const busyMs = Math.max(...threads.map((thread, index) => usedMs(thread) - before[index]))
    return { status, ms: Math.min(busyMs, waitedMs) - lateMs, atMs: startedAtMs + waitedMs / 2 }
  }

  /** Notes how long the control work takes, but for the time without a processor. */
  function control() {
    const [startedMs, delayedMs] = [performance.now(), ownDelayMs()]
    work(controlSteps)
    const lateMs = ownDelayMs() - delayedMs
    seen.controls.push({ ms: performance.now() - startedMs - lateMs, atMs: Date.now() })
  }

  await passAllThreads()
  const front = String(pid)
  const shards = readFileSync(join(dataDir, 'threads-of-shard'), 'utf8').trim().split('\n')
  // The first ones run before the compiler has optimized the loop.
  for (let n = 0; n < 10; n++) work(controlSteps)
  for (let n = 0; n < 4; n++) control()
  const attack = { isOver: false }
  parentPort.on('message', () => (attack.isOver = true))
  parentPort.postMessage({ memoryBytes: memoryBytes() })
  while (!attack.isOver) {
    const health = await wait([front], [], () => send('GET', '/healthz'))
    const written = await wait(shards, [front], () => write(agents[seen.shard.length % agents.length]))
    seen.front.push(health)
    seen.shard.push(written)
    if (health.status !== 200) seen.failed.push(`healthz ${health.status}`)
    if (written.status !== 201) seen.failed.push(`write ${written.status}`)
    seen.memoryBytes = Math.max(seen.memoryBytes, memoryBytes())
    control()
    await pause(2)
  }
  for (let n = 0; n < 4; n++) control()
  await passAllThreads()
  connection.destroy()
  parentPort.postMessage(seen)
  parentPort.close()
}
