import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'vitest'
import { inherited } from '../../../scripts/crash-loop/inherited.mjs'
import { checkedCall } from '../http/answers.js'
import { testRootKey, type TestServer } from './server.js'

const entry = join(import.meta.dirname, '../../../dist/program/strandfast.js')

/** Runs `strandfast reshard` on a data directory. */
export function runReshard(
  dataDir: string,
  shards: number | string,
  env: Record<string, string> = {},
): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [entry, 'reshard', '--shards', String(shards)],
    {
      env: {
        ...inherited,
        SERVICE_DATA_DIR: dataDir,
        SERVICE_ROOT_API_KEY: testRootKey,
        ...env,
      },
      encoding: 'utf8',
    },
  )
  return { status, stdout, stderr }
}

/**
 * The answers to all reads of a server, by route: for each agent, its strand byte by byte, its edges and its
 * state at `moments`; for all, proposals, organisms, keys and users.
 */
export async function everyRead(
  server: TestServer,
  moments: readonly string[],
): Promise<Map<string, string>> {
  const reads = new Map<string, string>()
  const read = async (route: string, body?: unknown): Promise<string> => {
    const { status, text } = await checkedCall(server, route, body === undefined ? {} : { body })
    expect(status, `${route}: ${text}`).toBe(200)
    reads.set(`${route} ${JSON.stringify(body)}`, text)
    return text
  }
  const { agents }: { agents: string[] } = JSON.parse(await read('GET /v1/agents?limit=1000'))
  for (const agent of agents) {
    for (const part of ['status', 'head', 'policies']) await read(`GET /v1/agents/${agent}/${part}`)
    const exported = await read(`GET /v1/strand/export?agent=${agent}`)
    await read(`GET /v1/strand/checkpoint?agent=${agent}`)
    await read(`POST /v1/agents/${agent}/query`, { type: 'time_range', limit: 1_000 })
    await read(`GET /v1/graph/traverse/${agent}?depth=3`)
    for (const direction of ['out', 'in']) {
      await read(`GET /v1/graph/edges/${agent}?direction=${direction}`)
      for (const ts of moments) await read(`GET /v1/graph/edges/${agent}?direction=${direction}&as_of=${ts}`)
    }
    for (const ts of moments) await read(`GET /v1/strand/as-of?agent=${agent}&ts=${ts}&limit=1000`)
    const hashes = exported.matchAll(/\\nprev (?!0{64})([0-9a-f]{64})/g)
    for (const [, hash] of [...hashes].slice(0, 40)) await read(`GET /v1/agents/${agent}/records/${hash}`)
  }
  const { body } = await checkedCall(server, 'GET /v1/proposals?limit=1000')
  const proposals = body.proposals.map((one: unknown) => JSON.stringify(one))
  reads.set('proposals', proposals.toSorted().join('\n'))
  await read('GET /v1/organisms')
  const keys = await read('GET /v1/admin/api-keys')
  // A killed server loses the key uses of the last minute.
  reads.set('GET /v1/admin/api-keys undefined', keys.replaceAll(/"last_used_at_ms":\w+/g, ''))
  // Each start of a test server has another license, which is recorded.
  const audit = await checkedCall(server, 'GET /v1/strand/export?agent=server::audit&to_seq=2')
  reads.set('audit', audit.text.split('\n').slice(1, 4).join('\n'))
  for (const base of ['/v1/auth', '/v1/organisms/acme/auth']) await read(`GET ${base}/users`)
  return reads
}
