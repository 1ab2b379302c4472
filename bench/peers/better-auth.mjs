import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startServer } from '../child.mjs'
import { prepareLoad, runCleanly } from '../load.mjs'
import { benchUsers, loginRequests, registerAll } from '../logins.mjs'
import { call } from '../server.mjs'
import { packageVersion } from './programs.mjs'

const script = fileURLToPath(new URL('better-auth-server.mjs', import.meta.url))
const packages = ['better-auth', 'better-sqlite3', '@node-rs/argon2']
const USERS = 128
const hashes = [
  { hash: 'argon2', note: 'argon2id (19 MiB, 2 passes)' },
  { hash: 'scrypt', note: 'scrypt, its own default' },
]

/**
 * Better Auth on node:http and SQLite, with its default hash and with that of Strandfast.
 * @type {import('./peer.mjs').Peer}
 */
export const betterAuth = {
  name: 'better-auth',
  kinds: ['sign-in'],
  missing: () =>
    packages.some((name) => packageVersion(name) === undefined) ? 'run npm ci in bench/peers' : undefined,
  async start({ plan, directory }) {
    const own = join(directory, 'better-auth')
    mkdirSync(own)
    const users = benchUsers(USERS)
    const load = prepareLoad(loginRequests(users, '/api/auth/sign-in/email'), {
      generator: plan.generator,
      directory,
    })
    const servers = []
    const stop = async () => void (await Promise.all(servers.map((server) => server.stop())))
    try {
      for (const { hash } of hashes) {
        const server = await startServer([script, hash, join(own, `${hash}.db`)])
        servers.push(server)
        const named = users.map((user) => ({ ...user, name: user.email }))
        await registerAll(`${server.url}/api/auth/sign-up/email`, named, 200)
        const { user, token } = await call(`${server.url}/api/auth/sign-in/email`, { body: users[0] })
        if (user.email !== users[0].email || !token) throw new Error('better-auth did not sign the user in')
      }
    } catch (error) {
      await stop()
      throw error
    }
    const contenders = ({ connections }) =>
      hashes.map(({ hash, note }, index) => ({
        name: `better-auth, ${hash}`,
        role: 'peer',
        note: `node:http, SQLite; ${note}; session cookie, session on disk; no signed audit record`,
        async measure(seconds) {
          const { url } = servers[index]
          const { perSecond, p50Ms, p99Ms } = await runCleanly(load, url, { connections, seconds })
          return { value: perSecond, p50Ms, p99Ms }
        },
      }))
    return { version: packageVersion('better-auth'), contenders, stop }
  },
}
