import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { nodeVersions, noOtherRuntime, runtime } from '../../scripts/runtimes.mjs'
import { leftOut } from '../support/faults/rounds.js'
import { call, startServer } from '../support/server/server.js'

/*
 * The built program on each Node version that the README lists, with the HTTP library that it finds there.
 */

const program = join(import.meta.dirname, '../../dist/program/strandfast.js')
const directory = mkdtempSync(join(tmpdir(), 'strandfast-nodes-'))

afterAll(() => rmSync(directory, { recursive: true, force: true }))

const nodes: [version: string, engine: 'uws' | 'node'][] = [
  [nodeVersions[20], 'uws'],
  [nodeVersions[22], 'uws'],
  [nodeVersions[24], 'node'],
  [nodeVersions[26], 'node'],
]

// The first run on a machine downloads them.
const timeout = 240_000

describe.skipIf(leftOut(noOtherRuntime)).each(nodes)('on Node %s', { timeout }, (version, engine) => {
  it('the server keeps a record through kill -9, and its export verifies', async () => {
    const node = runtime('node', version)
    // Any library, even if the environment of the test run selects one.
    const env = { SERVICE_LOG_LEVEL: 'info', SERVICE_HTTP_ENGINE: 'auto' }
    let server = await startServer({ node, env })
    try {
      const written = await call(server, 'POST /v1/collections/any/records', { body: { data: { n: 1 } } })
      expect(written.status).toBe(201)
      await server.halt('SIGKILL')
      server = await startServer({ node, env, dataDir: server.dataDir })
      const read = await call(server, `GET /v1/agents/any/records/${written.body.record_id}`)
      expect(read.text).toContain('{"n":1}')
      expect(server.stderr()).toContain(`"http":"${engine}"`)
      // With the slower library, the server prints how to install the faster one.
      expect(server.stderr().includes('npm install uNetworking/uWebSockets.js#v')).toBe(engine === 'node')
      const agent = await call(server, 'GET /v1/agents/any/status')
      const file = join(directory, `${version}.ndjson`)
      writeFileSync(file, (await call(server, 'GET /v1/strand/export?agent=any')).text)
      const verified = spawnSync(node, [program, 'verify', file, '--public-key', agent.body.public_key], {
        encoding: 'utf8',
      })
      expect({ ...verified, status: verified.status }).toMatchObject({ status: 0, stderr: '' })
    } finally {
      await server.stop()
    }
  })

  it('the configured library serves; if it is missing, the server exits 78 and creates no file', async () => {
    const node = runtime('node', version)
    const dataDir = join(directory, `${version}-configured`)
    if (engine === 'uws') {
      const server = await startServer({
        node,
        env: { SERVICE_HTTP_ENGINE: 'node', SERVICE_LOG_LEVEL: 'info' },
      })
      expect((await call(server, 'GET /readyz')).status).toBe(200)
      expect(server.stderr()).toContain('"http":"node"')
      await server.stop()
      return
    }
    const env = {
      PATH: process.env['PATH'],
      SERVICE_DATA_DIR: dataDir,
      SERVICE_PORT: '0',
      SERVICE_HTTP_ENGINE: 'uws',
    }
    const { status, stderr } = spawnSync(node, [program, 'serve'], { env, encoding: 'utf8', timeout: 30_000 })
    expect(status).toBe(78)
    expect(stderr).toMatch(
      /^uWebSockets\.js does not load on Node .*; for the faster .*: npm install .*SERVICE_HTTP_ENGINE=auto\n$/,
    )
    expect(spawnSync('ls', [dataDir]).status).not.toBe(0)
  })
})
