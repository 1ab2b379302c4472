import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { controlPath } from './control.js'
import type { ShardCopy } from '../../protocol/store-tasks.js'
import { type ControlRequest, parseControlAnswer } from '../../wire/control.js'

/**
 * Asks the server of a data directory to copy its stores, to which it can go on writing. When this has ended, however
 * it did, the server has closed what it had opened in `to`, or is gone.
 * @param to absolute; each exists and is empty
 * @throws Error when no server answers, it refuses, fails or ends, or `signal` aborts
 */
export async function askForCopy(
  dataDir: string,
  to: string[],
  { signal, onBytes }: { signal: AbortSignal; onBytes(bytes: number): void },
): Promise<ShardCopy[]> {
  const socket = connect(controlPath(dataDir))
  // The server gives up the copy, and then ends the connection.
  const onAbort = () => socket.end()
  signal.addEventListener('abort', onAbort)
  try {
    signal.throwIfAborted()
    const request: ControlRequest = { copy_to: to }
    socket.write(`${JSON.stringify(request)}\n`)
    for await (const line of linesOf(socket)) {
      if (signal.aborted) continue
      const answer = parseControlAnswer(line)
      if (answer === undefined) throw new Error('The server answers in a way that this version does not know')
      if ('copied' in answer) return answer.copied
      if ('failed' in answer) throw new Error(answer.failed)
      onBytes(answer.copied_bytes)
    }
    signal.throwIfAborted()
    throw new Error('The server has gone')
  } finally {
    signal.removeEventListener('abort', onAbort)
    socket.destroy()
  }
}

/** The lines of a socket. @throws the socket's error, which readline alone does not report */
async function* linesOf(socket: ReturnType<typeof connect>): AsyncGenerator<string> {
  let failure: Error | undefined
  const input = createInterface({ input: socket })
  socket.on('error', (error) => {
    failure = error
    input.close()
  })
  yield* input
  if (failure !== undefined) throw failure
}
