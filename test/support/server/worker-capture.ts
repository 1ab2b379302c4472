import { syncBuiltinESMExports } from 'node:module'
import workerThreads, { Worker } from 'node:worker_threads'

/** Captures the threads that the tested code starts. */
export interface WorkerCapture {
  /** All started threads with their names. */
  started: { name: string | undefined; worker: Worker }[]
  /** The last started thread of this name. @throws Error if there is none */
  latest(name: string): Worker
  /** Makes a thread fail like a bug: its next message is malformed. */
  fail(worker: Worker): void
  /** Stops the capture. */
  release(): void
}

/** Captures every thread that is started, invisibly to the tested code. */
export function captureWorkers(): WorkerCapture {
  const started: WorkerCapture['started'] = []
  class Captured extends Worker {
    constructor(...parameters: ConstructorParameters<typeof Worker>) {
      super(...parameters)
      started.push({ name: parameters[1]?.name, worker: this })
    }
  }
  const replaceWorker = (constructor: typeof Worker) => {
    Reflect.set(workerThreads, 'Worker', constructor)
    syncBuiltinESMExports()
  }
  const original = workerThreads.Worker
  replaceWorker(Captured)
  return {
    started,
    latest(name) {
      const found = started.findLast((one) => one.name === name)
      if (found === undefined) throw new Error(`Expected a thread named ${name}`)
      return found.worker
    },
    // 0xc1 is the only byte that no MessagePack value starts with.
    fail: (worker) => worker.postMessage(new Uint8Array([0xc1, 0xc1]).buffer),
    release: () => replaceWorker(original),
  }
}
