/*
 * Both sides of a probe (probe.ts). As a thread of the test process, it sends requests to a server and
 * reports the processor time that the server's threads used while each request waited. Preloaded into the
 * server (`node --import`), it records long turns of the event loops of fronts and shards. It judges nothing:
 * probe.ts compares the times with the control.
 */
import { appendFileSync, existsSync, openSync, readFileSync, readlinkSync, readSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import threads, { isMainThread, parentPort, workerData } from 'node:worker_threads'

/** The interval of the timer that ends a turn, and the shortest turn that is recorded, milliseconds. */
const TURN_MS = 2
const RECORDED_MS = 10

/** The memory of the control work: more than a first-level cache, as in a server. */
const table = new Uint32Array(1 << 16)
let state = 1

/** Does `steps` of constant work. */
export function work(steps) {
  for (let n = 0; n < steps; n++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const at = (state ^ table[state & 0xffff]) & 0xffff
    table[at] = (table[at] + n) >>> 0
  }
}

if (workerData?.probe !== undefined) await probe(workerData.probe)
else if (isMainThread || workerData?.kind === 'front') recordTurns('front')
else if (workerData?.settings?.shard !== undefined) recordTurns('shard')

/**
 * Records the processor time of each long turn of this thread, in which it serves nothing else. The thread
 * measures itself, so waiting for a processor does not count.
 */
function recordTurns(kind) {
  const dataDir = process.env.SERVICE_DATA_DIR
  const record = (what, text) => appendFileSync(join(dataDir, `${what}-of-${kind}`), `${text}\n`)
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
    // The server starts in an empty directory and creates format.json there.
    if (!isNamed && existsSync(join(dataDir, 'format.json'))) {
      isNamed = true
      record('threads', basename(readlinkSync('/proc/thread-self')))
    }
    if (isNamed && ms >= RECORDED_MS) record('turns', JSON.stringify({ ms, atMs: Date.now() - ms / 2 }))
  }
  const again = () => {
    endTurn()
    setTimeout(again, TURN_MS).unref()
  }
  again()
  // A busy shard receives commands without returning to its event loop.
  const { receiveMessageOnPort } = threads
  threads.receiveMessageOnPort = (port) => {
    endTurn()
    return receiveMessageOnPort(port)
  }
  syncBuiltinESMExports()
}

/** Probes a server until a message arrives. */
async function probe({ url, pid, rootKey, dataDir, agents, controlSteps }) {
  const connection = new Agent({ keepAlive: true, maxSockets: 1 })
  const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' }

  /** Figures of the scheduler: milliseconds on a processor, and milliseconds ready without a processor. */
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

  /** Anonymous resident memory of the process, bytes; 0 after its end. */
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
   * Writes twice to each agent, so that the event loops of front and shards complete a turn and record
   * earlier ones.
   */
  async function flushTurns() {
    for (const agent of [...agents, ...agents]) await write(agent)
  }

  const seen = { front: [], shard: [], controls: [], failed: [], memoryBytes: 0 }

  /**
   * Sends a request. Returns its status and the longest processor time of one of `threads` during it. Time in
   * which this thread, or a thread that passes the answer on, waited for a processor is subtracted, since the
   * answer may have been ready.
   */
  async function measure(threads, passing, sendRequest) {
    const before = threads.map(usedMs)
    const delayedMs = () => ownDelayMs() + passing.reduce((sum, thread) => sum + of(thread).delayedMs, 0)
    const earlierDelayMs = delayedMs()
    const [startedMs, startedAtMs] = [performance.now(), Date.now()]
    const status = await sendRequest()
    const waitedMs = performance.now() - startedMs
    const lateMs = delayedMs() - earlierDelayMs
    const busyMs = Math.max(...threads.map((thread, index) => usedMs(thread) - before[index]))
    return { status, ms: Math.min(busyMs, waitedMs) - lateMs, atMs: startedAtMs + waitedMs / 2 }
  }

  /** Records the duration of the control work without the time spent waiting for a processor. */
  function control() {
    const [startedMs, delayedMs] = [performance.now(), ownDelayMs()]
    work(controlSteps)
    const lateMs = ownDelayMs() - delayedMs
    seen.controls.push({ ms: performance.now() - startedMs - lateMs, atMs: Date.now() })
  }

  await flushTurns()
  const front = String(pid)
  const shards = readFileSync(join(dataDir, 'threads-of-shard'), 'utf8').trim().split('\n')
  // The first runs happen before the loop is optimized.
  for (let n = 0; n < 10; n++) work(controlSteps)
  for (let n = 0; n < 4; n++) control()
  const attack = { isOver: false }
  parentPort.on('message', () => (attack.isOver = true))
  parentPort.postMessage({ memoryBytes: memoryBytes() })
  while (!attack.isOver) {
    const health = await measure([front], [], () => send('GET', '/healthz'))
    const written = await measure(shards, [front], () => write(agents[seen.shard.length % agents.length]))
    seen.front.push(health)
    seen.shard.push(written)
    if (health.status !== 200) seen.failed.push(`healthz ${health.status}`)
    if (written.status !== 201) seen.failed.push(`write ${written.status}`)
    seen.memoryBytes = Math.max(seen.memoryBytes, memoryBytes())
    control()
    await pause(2)
  }
  for (let n = 0; n < 4; n++) control()
  await flushTurns()
  connection.destroy()
  parentPort.postMessage(seen)
  parentPort.close()
}
