import type { VerifyResult } from '../../../client/index.js'
import type { CheckOptions, FromChecker, ToChecker } from './check-messages.js'

/** A finished check. */
export interface Checked {
  result: VerifyResult
  /** The checkpoint of the trailer. */
  checkpoint: string | undefined
}

/** How a check is started. */
export interface CheckRequest {
  stream: ReadableStream<Uint8Array>
  options: CheckOptions
  onProgress: (records: number) => void
  signal: AbortSignal
}

/**
 * Checks an export in a worker, piece by piece: neither the page nor the worker holds more than a piece of it.
 * @throws Error for what the worker cannot do here; what reading the stream throws; the signal's reason
 */
export async function checkInWorker(request: CheckRequest): Promise<Checked> {
  const { stream, options, onProgress, signal } = request
  signal.throwIfAborted()
  const worker = new Worker(workerAddress(), { type: 'module' })
  const reader = stream.getReader()
  const tell = (message: ToChecker, transfer: Transferable[] = []) => worker.postMessage(message, transfer)
  try {
    return await new Promise<Checked>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      worker.addEventListener('error', ({ message }) =>
        reject(new Error(message === '' ? 'The worker that checks could not be started' : message)),
      )
      const pass = async (): Promise<void> => {
        const { done, value } = await reader.read()
        if (done) return tell({ kind: 'end' })
        const bytes = new Uint8Array(value)
        tell({ kind: 'piece', bytes }, [bytes.buffer])
      }
      worker.addEventListener('message', ({ data }: MessageEvent<FromChecker>) => {
        if (data.kind === 'more') pass().catch(reject)
        else if (data.kind === 'progress') onProgress(data.records)
        else if (data.kind === 'failed') reject(new Error(data.message))
        else resolve(data)
      })
      tell({ kind: 'begin', options })
    })
  } finally {
    worker.terminate()
    // What is left of a stream that failed or ended is nobody's concern.
    await reader.cancel().catch(() => undefined)
  }
}

/** The page's one script address: that of the worker, which the page names (Trusted Types). */
function workerAddress(): string {
  const named = document.querySelector<HTMLMetaElement>('meta[name="check-worker"]')?.content
  if (named === undefined) throw new Error('The page does not name the worker that checks')
  const address = new URL(named, document.baseURI).href
  if (policy === undefined && window.trustedTypes !== undefined) {
    policy = window.trustedTypes.createPolicy('console-worker', {
      createScriptURL(url) {
        if (url === address) return url
        throw new TypeError('Expected the address of the worker that checks')
      },
    })
  }
  return policy?.createScriptURL(address) ?? address
}

let policy: TrustedScriptPolicy | undefined
