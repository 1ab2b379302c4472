import type { VerifyOptions, VerifyResult } from '../../../client/index.js'

export interface Checked {
  result: VerifyResult
  /** The checkpoint of the export's trailer. */
  checkpoint: string | undefined
}

interface CheckRequest {
  stream: ReadableStream<Uint8Array>
  options: CheckOptions
  onProgress: (records: number) => void
  signal: AbortSignal
}

/**
 * Checks an export in a worker. Neither the page nor the worker holds more than one piece of it at a time.
 * @throws Error if the worker cannot run; the error of the stream; the signal's reason
 */
export async function checkInWorker(request: CheckRequest): Promise<Checked> {
  const { stream, options, onProgress, signal } = request
  signal.throwIfAborted()
  const worker = new Worker(workerAddress(), { type: 'module' })
  const reader = stream.getReader()
  const send = (message: ToChecker, transfer: Transferable[] = []) => worker.postMessage(message, transfer)
  try {
    return await new Promise<Checked>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      worker.addEventListener('error', ({ message }) =>
        reject(new Error(message === '' ? 'The verification worker could not be started' : message)),
      )
      const sendPiece = async (): Promise<void> => {
        const { done, value } = await reader.read()
        if (done) return send({ kind: 'end' })
        const bytes = new Uint8Array(value)
        send({ kind: 'piece', bytes }, [bytes.buffer])
      }
      worker.addEventListener('message', ({ data }: MessageEvent<FromChecker>) => {
        if (data.kind === 'more') sendPiece().catch(reject)
        else if (data.kind === 'progress') onProgress(data.records)
        else if (data.kind === 'failed') reject(new Error(data.message))
        else resolve(data)
      })
      send({ kind: 'begin', options })
    })
  } finally {
    worker.terminate()
    // The stream may have failed already; a second error adds nothing.
    await reader.cancel().catch(() => undefined)
  }
}

/**
 * The address of the worker from the page's meta element, the only one that the Trusted Types policy allows.
 */
function workerAddress(): string {
  const named = document.querySelector<HTMLMetaElement>('meta[name="check-worker"]')?.content
  if (named === undefined) throw new Error('The page has no address for the verification worker')
  const address = new URL(named, document.baseURI).href
  if (policy === undefined && window.trustedTypes !== undefined) {
    policy = window.trustedTypes.createPolicy('console-worker', {
      createScriptURL(url) {
        if (url === address) return url
        throw new TypeError('Expected the address of the verification worker')
      },
    })
  }
  return policy?.createScriptURL(address) ?? address
}

let policy: TrustedScriptPolicy | undefined

/** What an export is verified against. */
export type CheckOptions = Pick<VerifyOptions, 'publicKey' | 'strand' | 'kept'> & {
  /** The hash that the first record must have: the chain head of an earlier check. */
  firstHash?: string | undefined
}

/** Messages to the worker: the options first, then a piece of the export for each `more`. */
export type ToChecker =
  | { kind: 'begin'; options: CheckOptions }
  | { kind: 'piece'; bytes: Uint8Array<ArrayBuffer> }
  | { kind: 'end' }

/** Messages from the worker. */
export type FromChecker =
  /** Requests the next piece. */
  | { kind: 'more' }
  | { kind: 'progress'; records: number }
  | { kind: 'result'; result: VerifyResult; checkpoint: string | undefined }
  | { kind: 'failed'; message: string }
