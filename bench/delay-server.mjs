/**
 * A way to a port of this machine that takes longer: everything is passed on after a delay, each way, and connections are
 * not counted or limited. Its arguments are the port and the delay, milliseconds, of which 0 passes on at once.
 *
 * Timers of the event loop know whole milliseconds. So another thread sleeps for shorter times and wakes this one. The delay
 * is the same for all connections, so that what came first leaves first, and one queue has it all. What a peer may send before it is
 * read is not bounded here: nodes bound what they have under way.
 */
import { connect, createServer } from 'node:net'
import { setPriority } from 'node:os'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const NEVER = 0n
/** What is due so soon is passed on with what is due. */
const SOON_US = 20n
/** The kernel wakes a thread so much later than it was asked to. */
const SLACK_MS = 0.05
/** A network needs no processor, so this must not wait for one longer than it has to. */
const PRIORITY = -10

if (isMainThread) serve(process.argv[2], Number(process.argv[3]))
else sleepAgainAndAgain(workerData)

function serve(target, delayMs) {
  if (process.getuid?.() === 0) setPriority(PRIORITY)
  const way = delayMs === 0 ? (act) => act() : delayedBy(BigInt(Math.round(delayMs * 1_000)))
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ port: Number(target), host: '127.0.0.1', noDelay: true })
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ]) {
      from.on('data', (bytes) => way(() => void to.write(bytes)))
      from.on('end', () => way(() => void to.end()))
      from.on('error', () => {})
      from.on('close', () => way(() => void to.destroySoon()))
    }
  })
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`listening on http://127.0.0.1:${server.address().port}\n`)
  })
  process.on('SIGTERM', () => process.exit(0))
}

/** Returns what does something after the delay, in the order in which it was asked to. */
function delayedBy(delayUs) {
  /** @type {{act: () => void, dueUs: bigint}[]} */
  let queue = []
  /** When the other thread is to wake this one. */
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

function sleepAgainAndAgain(alarm) {
  const nobody = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    Atomics.wait(alarm, 0, NEVER)
    const dueUs = Atomics.exchange(alarm, 0, NEVER)
    const leftMs = Number(dueUs - monotonicUs()) / 1_000 - SLACK_MS
    if (leftMs > 0) Atomics.wait(nobody, 0, 0, leftMs)
    parentPort.postMessage(undefined)
  }
}

/** The same for all threads of the process. */
function monotonicUs() {
  return process.hrtime.bigint() / 1_000n
}
