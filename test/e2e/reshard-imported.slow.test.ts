import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { exportOf, fill, importTo, linesOf, sharedSeed } from '../support/shard/imports.js'
import { everyRead, runReshard } from '../support/server/reshard.js'
import { startAuthServer } from '../support/server/auth-server.js'
import type { TestServer } from '../support/server/server.js'

const directory = mkdtempSync(join(tmpdir(), 'strandfast-imported-'))
const env = { ...sharedSeed }
let server: TestServer | undefined

afterAll(async () => {
  await server?.halt()
  rmSync(directory, { recursive: true })
})

async function start(dataDir: string, more: Record<string, string> = {}): Promise<TestServer> {
  server = await startAuthServer({ dataDir: join(directory, dataDir), env: { ...env, ...more } })
  return server
}

/** The exports of two strands. */
async function exportsOfAnother(): Promise<string[]> {
  const source = await start('source', { SERVICE_SHARDS: '2' })
  const exported: string[] = []
  for (const agent of ['grown', 'whole']) {
    await newAgent(source, agent)
    await fill(source, agent, { from: 0, count: 5 })
    const hashes = await fill(source, agent, { from: 5, count: 20 })
    for (const [index, path] of [
      [3, '/erase'],
      [4, ''],
    ] as const) {
      const route = `${path === '' ? 'DELETE' : 'POST'} /v1/agents/${agent}/records/${hashes[index]}${path}`
      expect((await checkedCall(source, route)).status).toBe(200)
    }
    await fill(source, agent, { from: 25, count: 20, query: '?signing=group' })
    exported.push(await exportOf(source, agent))
  }
  await source.halt()
  return exported
}

it('moves imported strands, with the records written after the import', async () => {
  const exported = await exportsOfAnother()
  let target = await start('target', { SERVICE_SHARDS: '2' })
  const organism = { organism_id: 'acme', name: 'Acme' }
  expect((await checkedCall(target, 'POST /v1/organisms', { body: organism })).status).toBe(201)
  const { status: init } = await checkedCall(target, 'POST /v1/organisms/acme/auth/init', { body: {} })
  expect(init).toBe(201)
  for (const lines of exported) {
    const answer = await importTo(target, lines)
    expect(answer.status, answer.text).toBe(200)
  }
  for (const agent of ['grown', 'whole']) await fill(target, agent, { from: 45, count: 4 })
  const moments = [String(Date.now())]
  const before = await everyRead(target, moments)
  for (const shards of [3, 1]) {
    await target.halt()
    const { status, stderr } = runReshard(join(directory, 'target'), shards, env)
    expect(status, stderr).toBe(0)
    target = await start('target')
    expect(await everyRead(target, moments)).toEqual(before)
  }
  for (const agent of ['grown', 'whole']) {
    await fill(target, agent, { from: 49, count: 2 })
    expect(await verifyExport(linesOf(await exportOf(target, agent)))).toMatchObject({ ok: true, erased: 1 })
  }
}, 180_000)
