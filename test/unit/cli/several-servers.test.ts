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

describe('a command that is given the nodes of a cluster', () => {
  let server: TestServer
  let standBy: ScriptedServer
  let folder: string
  /** One that stands by, one where nobody listens, and the one that serves. */
  let url: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'strandfast-several-'))
    server = await startServer({ env: { SERVICE_SHARDS: '1' } })
    standBy = await startScriptedServer(answerProblem(503, 'unavailable', { 'retry-after': '1' }))
    url = `${standBy.url},http://127.0.0.1:${await freePort()}, ${server.url}/`
    const written = await asked('write', 'notes', '--data', '{"n":1}')
    expect(written).toMatchObject({ status: 0, stderr: '' })
  })

  afterAll(async () => {
    await standBy?.stop()
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  // The settings are those of nobody: the root key is told by the environment.
  const env = () => ({ SERVICE_ROOT_API_KEY: server.rootKey, SERVICE_DATA_DIR: join(folder, 'none') })
  const asked = (...args: string[]) => run([...args, '--url', url], env())

  it('writes to the one that serves, and queries and exports from it', async () => {
    const { status, stdout } = await asked('query', 'notes')
    expect([status, stdout]).toEqual([0, expect.stringContaining('"payload":{"n":1}')])
    const out = join(folder, 'notes.ndjson')
    expect(await asked('export', '--agent', 'notes', '--out', out)).toMatchObject({ status: 0 })
    expect(readFileSync(out, 'utf8')).toContain('"records":2')
    expect(standBy.received.map((request) => request.url)).toEqual([
      '/v1/collections/notes/records/batch',
      '/v1/agents/notes/query',
      '/v1/strand/export?agent=notes',
    ])
  })

  it('follows the records of the one that serves', async () => {
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

  it('sees the log of the one that serves', async () => {
    const state = join(folder, 'log.note')
    expect(await asked('witness', '--state', state)).toMatchObject({ status: 0, stderr: '' })
    expect(readFileSync(state, 'utf8')).toMatch(/^strandfast\/[0-9a-f]{64}\n/)
  })

  it('names all addresses where nobody answers, and says what the last one answers', async () => {
    const ports = [await freePort(), await freePort()]
    const away = ports.map((port) => `http://127.0.0.1:${port}`)
    const args = ['export', '--out', '-', '--url']
    const none = await run([...args, away.join()], env())
    expect(none.status).toBe(1)
    expect(none.stderr).toContain(`No server answers at ${away.join(', ')} (ECONNREFUSED)`)
    const last = await run([...args, `${away[0]},${standBy.url}`], env())
    expect(last.stderr).toContain('Detail of unavailable (503 unavailable)')
  })

  it.each([
    [
      ['query', 'notes', '--url', 'http://a.example,http://a.example/'],
      'Expected another address at place 2',
    ],
    [['tail', '--url', 'http://a.example,'], 'at place 2'],
    [['export', '--out', '-', '--url', 'https://a.example,http://b.example'], 'all https or all http'],
    [['write', 'notes', '--url', 'http://user:secret@a.example'], 'without user, query and fragment'],
    [['keys', 'rotate', '--url', 'http://a.example,http://b.example'], 'this command asks one server'],
    [['import', 'some.ndjson', '--url', 'http://a.example,http://b.example'], 'this command asks one server'],
  ])('refuses %j', async (args, says) => {
    const { status, stderr } = await run([...args, '--key', 'k'], env())
    expect(status).toBe(78)
    expect(stderr).toContain(says)
    expect(stderr).not.toContain('secret')
  })
})
