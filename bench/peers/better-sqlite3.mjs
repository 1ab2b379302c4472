import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runScript, startServer } from '../child.mjs'
import { prepareLoad } from '../load.mjs'
import { agentNames, writeRequests } from '../records.mjs'
import { call, credential } from '../server.mjs'
import { countedWrites } from './counted-writes.mjs'
import { packageVersion } from './programs.mjs'

const processScript = new URL('better-sqlite3-process.mjs', import.meta.url)
const serverScript = fileURLToPath(new URL('better-sqlite3-server.mjs', import.meta.url))
const AGENTS = 100
const WRITES = 2_000
const BULK_ROWS = 1_000

/**
 * SQLite with a write-ahead log and `synchronous=FULL`: in the process that writes, and behind a plain
 * server.
 * @type {import('./peer.mjs').Peer}
 */
export const betterSqlite3 = {
  name: 'better-sqlite3',
  kinds: ['writes', 'bulk'],
  missing: () => (packageVersion('better-sqlite3') === undefined ? 'run npm ci in bench/peers' : undefined),
  async start({ plan, directory }, kind) {
    const own = join(directory, `better-sqlite3-${kind}`)
    mkdirSync(own)
    const version = packageVersion('better-sqlite3')
    const note = 'in the process that writes; on disk before the next write; no signature, no chain'
    const inProcess = (name, rowsPerTransaction) => ({
      name,
      role: 'peer',
      note,
      measure: (seconds) =>
        runScript(processScript, { file: join(own, 'in-process.db'), rowsPerTransaction, seconds }),
    })
    if (kind === 'bulk') {
      const contenders = () => [inProcess('better-sqlite3, 1,000 rows a transaction', BULK_ROWS)]
      return { version, contenders, stop: async () => {} }
    }
    const server = await startServer([serverScript, join(own, 'served.db')])
    const requests = writeRequests(agentNames('writer', AGENTS), { count: WRITES, headers: credential })
    const load = prepareLoad(requests, { generator: plan.generator, directory })
    const contenders = ({ connections }) => [
      served(server.url, { load, connections }),
      ...(connections === 1 ? [inProcess('better-sqlite3, a row a transaction', 1)] : []),
    ]
    return { version, contenders, stop: server.stop }
  },
}

function served(url, { load, connections }) {
  const count = async () => (await call(`${url}/count`)).rows
  return {
    name: 'node:http and better-sqlite3',
    role: 'peer',
    note: 'HTTP; all that has arrived in one transaction, on disk before the answers; no signature, no chain',
    measure: (seconds) => countedWrites({ url, load, count }, { connections, seconds }),
  }
}
