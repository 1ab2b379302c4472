/** The wait for missing events after the last one, milliseconds. */
const IDLE_MS = 10_000
const POLL_MS = 20

/**
 * Follows the live stream of all agents and counts the events of rows that were sent.
 * @typedef {object} Follower
 * @property {() => number} count events so far
 * @property {(expected: number) => Promise<void>} caughtUp resolves after this many events, or a time without
 * any
 * @property {() => string[]} faults the faults of the stream
 * @property {() => number} lastAtMs when the last event arrived
 * @property {() => void} close
 */

/**
 * Opens the stream; resolves when it is open.
 * @param {import('../../dist/src/client/index.js').ServiceClient} client
 * @param {(agent: string) => boolean} isOurs
 * @returns {Promise<Follower>}
 */
export async function follow(client, isOurs) {
  const state = { events: 0, lastAtMs: performance.now() }
  const faults = []
  const lastSeqs = new Map()
  const opened = deferred()
  const onEvent = ({ agent, type, seq }) => {
    if (type.startsWith('sys/') || !isOurs(agent)) return
    if (seq <= (lastSeqs.get(agent) ?? 0)) faults.push(`${agent} ${seq} arrived out of order or twice`)
    lastSeqs.set(agent, seq)
    state.events++
    state.lastAtMs = performance.now()
  }
  const subscription = client.subscribeGlobal(onEvent, {
    onOpen: opened.resolve,
    onReconnect: (cause) => process.stderr.write(`The stream reconnects: ${cause.message}\n`),
    onError: (error) => {
      faults.push(`The stream ended: ${error}`)
      opened.reject(error)
    },
  })
  await opened.promise
  return {
    count: () => state.events,
    faults: () => faults,
    lastAtMs: () => state.lastAtMs,
    caughtUp: (expected) => caughtUp(state, expected),
    close: () => subscription.close(),
  }
}

async function caughtUp(state, expected) {
  const startMs = performance.now()
  while (state.events < expected) {
    const nowMs = performance.now()
    if (nowMs - Math.max(startMs, state.lastAtMs) > IDLE_MS) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/** Like Promise.withResolvers, which Node has from version 22. */
function deferred() {
  const parts = {}
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }))
  return parts
}
