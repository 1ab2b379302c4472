import { setImmediate as turn } from 'node:timers/promises'

/** Without a call for so long, milliseconds, this process may have been busy. The server keeps a connection for longer. */
const QUIET_MS = 1_000

let askedAtMs = performance.now()

/**
 * Calls `fetch`. While this process was busy (with a program that it waits for, or with a check), the server may have closed
 * a connection that it had kept; `fetch` would take it, as it has not seen its end yet, and fail. So what has come
 * meanwhile is read first: the first turn of the event loop may be the end of one that had begun before.
 */
export async function fetchSeen(...request: Parameters<typeof fetch>): Promise<Response> {
  const quietMs = performance.now() - askedAtMs
  askedAtMs = performance.now()
  if (quietMs > QUIET_MS) {
    await turn()
    await turn()
  }
  return fetch(...request)
}
