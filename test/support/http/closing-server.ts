import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'

const [closings, connections] = [0, 1]

/** A server that closes its idle keep-alive connections. */
export interface ClosingServer {
  url: string
  /**
   * Closes the connections, and blocks this thread until they are closed. A request that is sent as soon as
   * this resolves is sent before the close was noticed, as after long work on an earlier answer.
   */
  closeUnseen: () => Promise<void>
  /** Number of connections so far. */
  connections: () => number
  stop: () => Promise<unknown>
}

/** Starts a server in a separate thread, so that it can close connections while this thread is busy. */
export async function startClosingServer(): Promise<ClosingServer> {
  const counts = new Int32Array(new SharedArrayBuffer(8))
  const worker = new Worker(join(import.meta.dirname, 'closing-server.mjs'), { workerData: counts.buffer })
  const [port] = await once(worker, 'message')
  return {
    url: `http://127.0.0.1:${port}`,
    async closeUnseen() {
      // After an answer, `fetch` returns the connection to its pool one turn later.
      await turn()
      await turn()
      // Continues at the phase of the event loop in which answers arrive: after timers and before
      // `setImmediate`, for which `fetch` waits.
      await stat('.')
      const before = Atomics.load(counts, closings)
      worker.postMessage('close')
      Atomics.wait(counts, closings, before)
    },
    connections: () => Atomics.load(counts, connections),
    stop: () => worker.terminate(),
  }
}
