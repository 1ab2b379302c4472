import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'

const [closings, connections] = [0, 1]

/** A server that closes connections which it keeps, as one does that was not asked for long. */
export interface ClosingServer {
  url: string
  /**
   * Closes them, and holds this thread until they are closed. Whoever sends a request as soon as this resolves has not seen
   * it, as where one answer came, was worked on for long, and led to the next request.
   */
  closeUnseen: () => Promise<void>
  /** Connections that there have been. */
  connections: () => number
  stop: () => Promise<unknown>
}

/** Starts a server in a thread of its own, so that it can close connections while this one is busy. */
export async function startClosingServer(): Promise<ClosingServer> {
  const counts = new Int32Array(new SharedArrayBuffer(8))
  const worker = new Worker(join(import.meta.dirname, 'closing-server.mjs'), { workerData: counts.buffer })
  const [port] = await once(worker, 'message')
  return {
    url: `http://127.0.0.1:${port}`,
    async closeUnseen() {
      // Behind an answer its connection is given back, which `fetch` does a turn later.
      await turn()
      await turn()
      // On from where answers arrive in a turn of the event loop: behind timers and before `setImmediate`, for which `fetch`
      // waits.
      await stat('.')
      const before = Atomics.load(counts, closings)
      worker.postMessage('close')
      Atomics.wait(counts, closings, before)
    },
    connections: () => Atomics.load(counts, connections),
    stop: () => worker.terminate(),
  }
}
