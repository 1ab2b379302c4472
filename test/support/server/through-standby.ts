import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { keyPairFromSeed } from '../../../dist/src/strand/keys.js'
import { openAuthority } from '../../../dist/src/data/license-authority.js'
import { pooledRandom } from '../../../dist/src/base/random.js'
import { inherited } from '../../../scripts/crash-loop/inherited.mjs'
import { eventually } from '../eventually.js'

/** Like `TestServer`. */
interface Node {
  url: string
  stderr(): string
  halt(signal?: NodeJS.Signals): Promise<number | null>
  stop(): Promise<void>
}

/** Whether each test server is a standby node, with another node that owns the shards. */
export const throughStandby = process.env['STRANDFAST_THROUGH_STANDBY'] === '1'

/**
 * Repeats a request while the link between the two nodes is interrupted (503), as it may be when the machine is
 * busy: the lease of a link lasts for a second.
 * @param request may be repeated: a read, or a write with an Idempotency-Key
 */
export async function whileLinked<Answer extends { status: number }>(
  request: () => Promise<Answer>,
): Promise<Answer> {
  let answer = await request()
  await eventually(async () => {
    if (!throughStandby || answer.status !== 503) return true
    answer = await request()
    return false
  })
  return answer
}

const seed = '07'.repeat(32)
const program = join(import.meta.dirname, '../../../dist/program/strandfast.js')
let databases = 0

/** Creates a database for one cluster. @returns its URL and a function that removes it */
async function makeDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const of = process.env['STRANDFAST_STANDBY_DATABASE']
  if (of === undefined) throw new Error('Expected a database (standby-database.ts)')
  const name = `through_${process.pid}_${(databases += 1)}`
  const query = async (text: string) => {
    const client = new Client({ connectionString: of })
    await client.connect()
    await client.query(text)
    await client.end()
  }
  await query(`CREATE DATABASE ${name}`)
  return { url: of.replace(/postgres$/, name), drop: () => query(`DROP DATABASE ${name} WITH (FORCE)`) }
}

/** Starts two nodes of a new cluster. @returns the standby, which stops both */
export async function startStandby<Server extends Node>(
  dataDir: string,
  env: Record<string, string>,
  start: (dataDir: string, env: Record<string, string>) => Promise<Server>,
): Promise<Server> {
  const database = await makeDatabase()
  const shards = env['SERVICE_SHARDS'] ?? process.env['SERVICE_SHARDS'] ?? '2'
  const own = {
    ...env,
    SERVICE_SHARDS: shards,
    SERVICE_CLUSTER_URL: database.url,
    SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
    SERVICE_MASTER_SEED: seed,
    SERVICE_ROOT_API_KEY: 'test-root-key-0123456789abcdefghij',
    ...licenseOf(dataDir),
  }
  execFileSync(process.execPath, [program, 'cluster', 'init', '--shards', shards], {
    env: { ...inherited, ...own },
  })
  const ownerDir = mkdtempSync(join(tmpdir(), 'strandfast-owner-'))
  const owner = await start(ownerDir, { ...own, SERVICE_CLUSTER_NODE: 'owner' })
  const standby = await start(dataDir, { ...own, SERVICE_CLUSTER_NODE: 'standby' })
  await eventually(async () => (await fetch(`${standby.url}/readyz`)).status === 200)
  return {
    ...standby,
    stderr: () =>
      (owner.stderr() + standby.stderr()).replaceAll(
        /^warning: the cluster’s database does not wait for a standby .*\n/gm,
        '',
      ),
    async halt(signal) {
      const code = await standby.halt(signal)
      await owner.stop()
      return code
    },
    async stop() {
      await standby.stop()
      await owner.stop()
      await database.drop()
    },
  }
}

function licenseOf(dataDir: string): Record<string, string> {
  if (!existsSync(join(dataDir, 'license-authority.seed')) && !existsSync(dataDir)) return {}
  const authority = openAuthority(dataDir, pooledRandom())
  return authority.ok ? { SERVICE_LICENSE_PUBLIC_KEY: keyPairFromSeed(authority.seed).publicKey } : {}
}
