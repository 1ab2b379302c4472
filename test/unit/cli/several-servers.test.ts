import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inherited } from '../../../scripts/crash-loop/inherited.mjs'
import { type ScriptedServer, answerProblem, startScriptedServer } from '../../client/scripted-server.js'
import { run } from '../../support/server/command.js'
import { freePort } from '../../support/server/free-port.js'
import { type TestServer, startServer } from '../../support/server/server.js'

const program = join(import.meta.dirname, '../../../dist/program/strandfast.js')

describe('a command with the nodes of a cluster in --url', () => {
  let server: TestServer
  let standby: ScriptedServer
  let folder: string
  /** A standby, an address on which no server listens, and the serving node. */
  let url: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'strandfast-several-'))
    server = await startServer({ env: { SERVICE_SHARDS: '1' } })
    standby = await startScriptedServer(answerProblem(503, 'unavailable', { 'retry-after': '1' }))
    url = `${standby.url},http://127.0.0.1:${await freePort()}, ${server.url}/`
    const written = await runWithUrl('write', 'notes', '--data', '{"n":1}')
    expect(written).toMatchObject({ status: 0, stderr: '' })
  })

  afterAll(async () => {
    await standby?.stop()
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  // There is no data directory, so the root key comes from the environment.
  const env = () => ({ SERVICE_ROOT_API_KEY: server.rootKey, SERVICE_DATA_DIR: join(folder, 'none') })
  const runWithUrl = (...args: string[]) => run([...args, '--url', url], env())

  it('writes to the serving node, and queries and exports from it', async () => {
    const { status, stdout } = await runWithUrl('query', 'notes')
    expect([status, stdout]).toEqual([0, expect.stringContaining('"payload":{"n":1}')])
    const out = join(folder, 'notes.ndjson')
    expect(await runWithUrl('export', '--agent', 'notes', '--out', out)).toMatchObject({ status: 0 })
    expect(readFileSync(out, 'utf8')).toContain('"records":2')
    expect(standby.received.map((request) => request.url)).toEqual([
      '/v1/collections/notes/records/batch',
      '/v1/agents/notes/query',
      '/v1/strand/export?agent=notes',
    ])
  })

  it('follows the records of the serving node', async () => {
    const args = [program, 'tail', 'notes', '--since', '0', '--url', url]
    const child = spawn(process.execPath, args, {
      env: { ...inherited, ...env() },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [line]: unknown[] = await once(createInterface({ input: child.stdout }), 'line')
    child.kill('SIGTERM')
    await once(child, 'exit')
    expect(line).toContain('"payload":{"n":1}')
  })

  it('checks the log of the serving node', async () => {
    const state = join(folder, 'log.note')
    expect(await runWithUrl('witness', '--state', state)).toMatchObject({ status: 0, stderr: '' })
    expect(readFileSync(state, 'utf8')).toMatch(/^strandfast\/[0-9a-f]{64}\n/)
  })

  it('names all addresses when no server responds, otherwise the refusal of the last one', async () => {
    const ports = [await freePort(), await freePort()]
    const unreachable = ports.map((port) => `http://127.0.0.1:${port}`)
    const args = ['export', '--out', '-', '--url']
    const none = await run([...args, unreachable.join()], env())
    expect(none.status).toBe(1)
    expect(none.stderr).toContain(`No server responds at ${unreachable.join(', ')} (ECONNREFUSED)`)
    const last = await run([...args, `${unreachable[0]},${standby.url}`], env())
    expect(last.stderr).toContain('Detail of unavailable (503 unavailable)')
  })

  it.each([
    [
      ['query', 'notes', '--url', 'http://a.example,http://a.example/'],
      'Expected different addresses, but 1 and 2 are the same',
    ],
    [['tail', '--url', 'http://a.example,'], 'Expected address 2'],
    [['export', '--out', '-', '--url', 'https://a.example,http://b.example'], 'all https or all http'],
    [['write', 'notes', '--url', 'http://user:secret@a.example'], 'without user, query and fragment'],
    [['keys', 'rotate', '--url', 'http://a.example,http://b.example'], 'this command calls one server'],
    [
      ['import', 'some.ndjson', '--url', 'http://a.example,http://b.example'],
      'this command calls one server',
    ],
  ])('refuses %j', async (args, reason) => {
    const { status, stderr } = await run([...args, '--api-key', 'k'], env())
    expect(status).toBe(78)
    expect(stderr).toContain(reason)
    expect(stderr).not.toContain('secret')
  })
})
