import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startServer } from '../child.mjs'
import { prepareLoad, runCleanly } from '../load.mjs'
import { agentNames, writeRequests } from '../records.mjs'
import { call, credential } from '../server.mjs'
import { betterSqlite3 } from './better-sqlite3.mjs'
import { postgresql, startDatabase } from './postgresql.mjs'

const serverScript = fileURLToPath(new URL('hand-built/server.mjs', import.meta.url))
const AGENTS = 100
const WRITES = 2_000
const note = 'each record canonical, hashed, chained, signed and on disk before its answer'
const noteOf = {
  postgresql: `HTTP; ${note}; a transaction and a row lock a record, 24 connections`,
  sqlite: `HTTP; ${note}; all that has arrived in one transaction`,
}

/**
 * The same promise as a team would build it on what it has: its own server, sodium, and a database. It
 * has neither keys of callers nor streams nor limits, so its writes cost less than they would in use.
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
    const servers = []
    const forms = []
    for (const [engine, engineName] of [
      ['uws', 'uWebSockets.js'],
      ['node', 'node:http'],
    ])
      for (const [kind, storeName, location] of [
        ['postgresql', 'PostgreSQL', await database.make(`chained_${engine}`)],
        ['sqlite', 'better-sqlite3', join(directory, `chained-${engine}.db`)],
      ]) {
        const server = await startServer([serverScript, engine, kind, location])
        servers.push(server)
        const name = `${engineName}, ${storeName} and sodium`
        forms.push({ name, kind, url: server.url })
      }
    const contenders = ({ connections }) =>
      forms.map(({ name, kind, url }) => ({
        name,
        role: 'same',
        note: noteOf[kind],
        measure: (seconds) => measure({ url, load, agents }, { connections, seconds }),
      }))
    const stop = async () => {
      for (const server of servers) await server.stop()
      await database.stop()
    }
    return { version: '', contenders, stop }
  },
}

/** Starts with empty strands, so that one is verified whole afterwards. */
async function measure({ url, load, agents }, { connections, seconds }) {
  await call(`${url}/reset`, { body: agents })
  const result = await runCleanly(load, url, { connections, seconds })
  const { rows } = await call(`${url}/count`)
  if (rows < result.requests || rows > result.requests + connections)
    throw new Error(`${result.requests} writes were answered and ${rows} records found`)
  await call(`${url}/v1/agents/${agents[0]}/verify`)
  return { value: result.perSecond, p50Ms: result.p50Ms, p99Ms: result.p99Ms }
}
