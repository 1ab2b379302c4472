import { syncBuiltinESMExports } from 'node:module'
import workerThreads, { Worker } from 'node:worker_threads'

/** The threads that code under test starts while they are captured. */
export interface WorkerCapture {
  /** Every thread that was started so far, with the name that it was given. */
  started: { name: string | undefined; worker: Worker }[]
  /** The thread of that name that was started last. @throws Error when there is none */
  latest(name: string): Worker
  /** Makes a thread fail as a bug in it would: the next message that it reads is no frame. */
  fail(worker: Worker): void
  /** Lets threads be started unseen again. */
  release(): void
}

/** Begins to note every thread that is started; the code that starts them knows nothing of it. */
export function captureWorkers(): WorkerCapture {
  const started: WorkerCapture['started'] = []
  class Captured extends Worker {
    constructor(...parameters: ConstructorParameters<typeof Worker>) {
      super(...parameters)
      started.push({ name: parameters[1]?.name, worker: this })
    }
  }
  const put = (constructor: typeof Worker) => {
    Reflect.set(workerThreads, 'Worker', constructor)
    syncBuiltinESMExports()
  }
  const original = workerThreads.Worker
  put(Captured)
  return {
    started,
    latest(name) {
      const found = started.findLast((one) => one.name === name)
      if (found === undefined) throw new Error(`Expected a thread named ${name}`)
      return found.worker
    },
    // 0xc1 is the one byte that no MessagePack value begins with.
    fail: (worker) => worker.postMessage(new Uint8Array([0xc1, 0xc1]).buffer),
    release: () => put(original),
  }
}
