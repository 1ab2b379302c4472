import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { controlPath } from './control.js'
import type { ShardCopy } from '../../protocol/store-tasks.js'
import { type ControlRequest, parseControlAnswer } from '../../wire/control.js'

/**
 * Requests a copy of the stores from the server of a data directory, which may continue to write. When the
 * promise settles, the server has closed its files in `to`, or has ended.
 * @param to absolute paths of existing, empty directories
 * @throws Error when no server answers, the server refuses, fails or ends, or `signal` aborts
 */
export async function requestCopy(
  dataDir: string,
  to: string[],
  { signal, onBytes }: { signal: AbortSignal; onBytes(bytes: number): void },
): Promise<ShardCopy[]> {
  const socket = connect(controlPath(dataDir))
  // The server stops the copy and then ends the connection.
  const onAbort = () => socket.end()
  signal.addEventListener('abort', onAbort)
  try {
    signal.throwIfAborted()
    const request: ControlRequest = { copy_to: to }
    socket.write(`${JSON.stringify(request)}\n`)
    for await (const line of linesOf(socket)) {
      if (signal.aborted) continue
      const answer = parseControlAnswer(line)
      if (answer === undefined)
        throw new Error('The server sent an unknown answer: use a command of the same version')
      if ('copied' in answer) return answer.copied
      if ('failed' in answer) throw new Error(answer.failed)
      onBytes(answer.copied_bytes)
    }
    signal.throwIfAborted()
    throw new Error('The server closed the connection before the copy was complete')
  } finally {
    signal.removeEventListener('abort', onAbort)
    socket.destroy()
  }
}

/** Reads the lines of a socket. @throws the error of the socket, which readline does not report */
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
