import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startServer } from '../child.mjs'
import { prepareLoad } from '../load.mjs'
import { agentNames, writeRequests } from '../records.mjs'
import { call, credential } from '../server.mjs'
import { betterSqlite3 } from './better-sqlite3.mjs'
import { countedWrites } from './counted-writes.mjs'
import { postgresql, startDatabase } from './postgresql.mjs'

const serverScript = fileURLToPath(new URL('hand-built/server.mjs', import.meta.url))
const AGENTS = 100
const WRITES = 2_000
const note = 'HTTP; each record canonical, hashed, chained, signed and on disk before its answer'
const notes = {
  PostgreSQL: `${note}; a transaction and a row lock a record, 24 connections`,
  'better-sqlite3': `${note}; all that has arrived in one transaction`,
}

/**
 * The same promise as a team would build it on what it has: its own server, sodium, and a database. It has
 * neither keys of callers nor streams nor limits, so its writes cost less than they would in use.
 * @type {import('./peer.mjs').Peer}
 */
export const handBuilt = {
  name: 'Built by hand',
  kinds: ['writes'],
  missing: () => postgresql.missing() ?? betterSqlite3.missing(),
  async start({ plan, directory }) {
    const database = await startDatabase()
    const agents = agentNames('writer', AGENTS)
    const load = prepareLoad(writeRequests(agents, { count: WRITES, headers: credential }), {
      generator: plan.generator,
      directory,
    })
    const running = []
    for (const engine of ['uWebSockets.js', 'node:http'])
      for (const store of Object.keys(notes)) {
        const place =
          store === 'PostgreSQL'
            ? await database.make(`chained_${running.length}`)
            : join(directory, `chained-${running.length}.db`)
        running.push({ engine, store, server: await startServer([serverScript, engine, store, place]) })
      }
    const contenders = ({ connections }) =>
      running.map(({ engine, store, server: { url } }) => ({
        name: `${engine}, ${store} and sodium`,
        role: 'same',
        note: notes[store],
        measure: (seconds) => measure({ url, load, agents }, { connections, seconds }),
      }))
    const stop = async () => {
      for (const { server } of running) await server.stop()
      await database.stop()
    }
    return { version: '', contenders, stop }
  },
}

/** Starts with empty strands, so that one is verified whole afterwards. */
async function measure({ url, load, agents }, shape) {
  await call(`${url}/reset`, { body: agents })
  const count = async () => (await call(`${url}/count`)).rows
  const turn = await countedWrites({ url, load, count }, shape)
  await call(`${url}/v1/agents/${agents[0]}/verify`)
  return turn
}
