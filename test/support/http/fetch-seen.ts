import { setImmediate as turn } from 'node:timers/promises'

/**
 * Milliseconds without a call after which this process may have been busy. The server keeps idle connections
 * open for longer.
 */
const QUIET_MS = 1_000

let calledAtMs = performance.now()

/**
 * Calls `fetch`. While this process was busy, for example waiting for a program, the server may have closed
 * an idle connection; `fetch` would use the connection and fail, because it has not processed the close yet.
 * Pending events are therefore processed first. The first turn of the event loop may be the end of one that
 * had already begun.
 */
export async function fetchAfterClose(...request: Parameters<typeof fetch>): Promise<Response> {
  const quietMs = performance.now() - calledAtMs
  calledAtMs = performance.now()
  if (quietMs > QUIET_MS) {
    await turn()
    await turn()
  }
  return fetch(...request)
}
