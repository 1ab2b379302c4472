/**
 * A proxy to a port of this machine that forwards everything after a delay in each direction. Its arguments
 * are the port and the delay in milliseconds; a delay of 0 forwards immediately.
 *
 * Timers of the event loop have a resolution of a millisecond, so another thread sleeps for shorter times and
 * wakes this one. The delay is the same for all connections, so one first-in, first-out queue serves them
 * all. The bytes in the queue are not bounded here: nodes bound what they have in flight.
 */
import { connect, createServer } from 'node:net'
import { setPriority } from 'node:os'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const NEVER = 0n
/** Actions that are due within this time run together with those that are due now. */
const SOON_US = 20n
/** The kernel wakes a thread this much later than requested. */
const SLACK_MS = 0.05
/** A network needs no processor, so the proxy must not wait for one longer than necessary. */
const PRIORITY = -10

if (isMainThread) serve(process.argv[2], Number(process.argv[3]))
else runSleeper(workerData)

function serve(target, delayMs) {
  if (process.getuid?.() === 0) setPriority(PRIORITY)
  const forward = delayMs === 0 ? (act) => act() : delayedBy(BigInt(Math.round(delayMs * 1_000)))
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ port: Number(target), host: '127.0.0.1', noDelay: true })
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ]) {
      from.on('data', (bytes) => forward(() => void to.write(bytes)))
      from.on('end', () => forward(() => void to.end()))
      from.on('error', () => {})
      from.on('close', () => forward(() => void to.destroySoon()))
    }
  })
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`listening on http://127.0.0.1:${server.address().port}\n`)
  })
  process.on('SIGTERM', () => process.exit(0))
}

/** Returns a function that runs actions after the delay, in the order of the calls. */
function delayedBy(delayUs) {
  /** @type {{act: () => void, dueUs: bigint}[]} */
  let queue = []
  /** The time at which the other thread wakes this one; `NEVER` while the queue is empty. */
  const alarm = new BigInt64Array(new SharedArrayBuffer(8))
  const sleeper = new Worker(new URL(import.meta.url), { workerData: alarm })
  const wakeAt = (dueUs) => {
    Atomics.store(alarm, 0, dueUs)
    Atomics.notify(alarm, 0)
  }
  sleeper.on('message', () => {
    const nowUs = monotonicUs() + SOON_US
    const later = queue.findIndex(({ dueUs }) => dueUs > nowUs)
    const due = later === -1 ? queue : queue.slice(0, later)
    queue = later === -1 ? [] : queue.slice(later)
    for (const { act } of due) act()
    if (queue.length > 0) wakeAt(queue[0].dueUs)
  })
  return (act) => {
    const dueUs = monotonicUs() + delayUs
    queue.push({ act, dueUs })
    if (queue.length === 1) wakeAt(dueUs)
  }
}

function runSleeper(alarm) {
  const neverNotified = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    Atomics.wait(alarm, 0, NEVER)
    const dueUs = Atomics.exchange(alarm, 0, NEVER)
    const leftMs = Number(dueUs - monotonicUs()) / 1_000 - SLACK_MS
    if (leftMs > 0) Atomics.wait(neverNotified, 0, 0, leftMs)
    parentPort.postMessage(undefined)
  }
}

/** Microseconds of a clock that all threads of the process share. */
function monotonicUs() {
  return process.hrtime.bigint() / 1_000n
}
