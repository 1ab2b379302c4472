/** A server of better-auth: password sign-in on node:http and SQLite, with `argon2` or `scrypt` hashes. */
import { createServer } from 'node:http'
import { hash, verify } from '@node-rs/argon2'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import Database from 'better-sqlite3'

const [hashName, file] = process.argv.slice(2)

/** The hash parameters of Strandfast: argon2id, memory in KiB. */
const parameters = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 }
const argon2 = {
  hash: (password) => hash(password, parameters),
  verify: ({ hash: encoded, password }) => verify(encoded, password),
}

const database = new Database(file)
database.pragma('journal_mode = WAL')
database.pragma('synchronous = FULL')

const server = createServer()
server.listen(0, '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}`
  const options = {
    database,
    baseURL: url,
    secret: 'bench-secret-bench-secret-bench-secret-bench',
    emailAndPassword: {
      enabled: true,
      autoSignIn: false,
      ...(hashName === 'argon2' && { password: argon2 }),
    },
    // The clients of the bench are not browsers.
    advanced: { disableCSRFCheck: true, disableOriginCheck: true },
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    logger: { level: 'error' },
  }
  await (await getMigrations(options)).runMigrations()
  server.on('request', toNodeHandler(betterAuth(options)))
  process.stdout.write(`listening on ${url}\n`)
})
process.on('SIGTERM', () => process.exit(0))
