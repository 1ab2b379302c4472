/**
 * The promise of Strandfast for a write, built by hand: each record canonical, hashed, chained to the one
 * before in its strand, signed, and on disk before its answer. Arguments: `uWebSockets.js` or
 * `node:http`, `PostgreSQL` or `better-sqlite3`, and the URL of an empty database or the path of a new file.
 */
import { makeKeyPair, verify } from './chain.mjs'
import { openPostgresqlStore } from './postgresql-store.mjs'
import { serveByNode, serveByUws } from './serve.mjs'
import { openSqliteStore } from './sqlite-store.mjs'

/**
 * Where strands are kept.
 * @typedef {object} Store
 * @property {(content: {agent: string, body: object}) => Promise<import('./chain.mjs').ChainedRecord>} append
 *   resolves when the record is on disk
 * @property {(agents: string[]) => Promise<void>} reset removes all records and starts these strands
 * @property {(agent: string) => Promise<import('./chain.mjs').ChainedRecord[]>} read
 * @property {() => Promise<number>} count
 * @property {() => Promise<void>} close
 */

const [, , engine, kind, place] = process.argv
const { publicKey, secretKey } = makeKeyPair()
const store = await (kind === 'PostgreSQL' ? openPostgresqlStore : openSqliteStore)(place, secretKey)

async function handle({ path, text }) {
  try {
    if (path === '/reset') {
      await store.reset(JSON.parse(text))
      return { status: 200, body: {} }
    }
    if (path === '/count') return { status: 200, body: { rows: await store.count() } }
    const agent = path.split('/')[3]
    if (path.endsWith('/verify')) {
      const records = await store.read(agent)
      verify(records, publicKey)
      return { status: 200, body: { verified: records.length } }
    }
    const { seq, takenAt, hash } = await store.append({ agent, body: JSON.parse(text).data })
    return { status: 201, body: { agent, seq, taken_at: takenAt, hash: hash.toString('hex') } }
  } catch (error) {
    return { status: 500, body: { detail: String(error) } }
  }
}

const port = await (engine === 'uWebSockets.js' ? serveByUws : serveByNode)(handle)
process.stdout.write(`listening on http://127.0.0.1:${port}\n`)
process.on('SIGTERM', async () => {
  await store.close()
  process.exit(0)
})
