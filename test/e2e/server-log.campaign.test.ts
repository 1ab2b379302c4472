import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { shardOf } from '../../src/strand/placement.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { headNow, logRecords, untilLogged } from '../support/server/server-log.js'
import { call as callOnce, startServer, type TestServer } from '../support/server/server.js'

const env = { SERVICE_LOG_INTERVAL_SECS: '1', SERVICE_SHARDS: '2' }
const log = 'server::log'
const entry = join(import.meta.dirname, '../../dist/program/strandfast.js')

/** Repeats a call once, because the server may have closed a connection that was idle while commands ran. */
const call: typeof callOnce = (...args) => callOnce(...args).catch(() => callOnce(...args))

/** Runs a command like a cron job, without the environment of the test. */
function strandfast(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [entry, ...args], {
    env: { PATH: process.env['PATH'] },
    encoding: 'utf8',
  })
  return { status, out: stdout, err: stderr }
}

const write = (server: TestServer, agent: string, n: number) =>
  call(server, `POST /v1/collections/${agent}/records`, { body: { data: { n } } })

describe('a server that is killed between two updates of its log', { timeout: 180_000 }, () => {
  it('has the newest head of every strand in its log after the next update', async () => {
    const agents = Array.from({ length: 6 }, (_none, n) => `agent-${n}`)
    let server = await startServer({ env })
    try {
      for (let round = 0; round < 4; round++) {
        const writing = Promise.allSettled(
          agents.map(async (agent) => {
            // Until the server was killed.
            for (let n = 0; ; n++) await write(server, agent, n)
          }),
        )
        await untilWritten(server, agents)
        await server.halt('SIGKILL')
        await writing
        server = await startServer({ env, dataDir: server.dataDir })
      }
      await untilLogged(server, agents)
      const sizes = new Map<string, number>()
      for (const { heads } of await logRecords(server)) {
        for (const [strand, size] of heads) {
          expect(size).toBeGreaterThan(sizes.get(strand) ?? 0)
          sizes.set(strand, size)
        }
      }
      for (const agent of agents) {
        const { strand, size } = await headNow(server, agent)
        expect(sizes.get(strand)).toBe(size)
      }
      const exported = await call(server, `GET /v1/strand/export?agent=${log}`)
      expect(await verifyExport(exported.text.trimEnd().split('\n'))).toMatchObject({ ok: true })
    } finally {
      await server.stop()
    }
  })
})

/**
 * Resolves when each agent has some more records; the last writes are in flight when the server is killed.
 */
async function untilWritten(server: TestServer, agents: readonly string[]): Promise<void> {
  for (const agent of agents) {
    const before = (await call(server, `GET /v1/agents/${agent}/head`)).body?.seq ?? 0
    for (let seq = before; seq < before + 5;) {
      seq = (await call(server, `GET /v1/agents/${agent}/head`)).body?.seq ?? 0
    }
  }
}

describe('a data directory that was set back to an earlier state', { timeout: 180_000 }, () => {
  let server: TestServer
  let directory = ''
  let publicKey = ''
  let logKey = ''
  // In another shard than the log, so that one can be set back without the other.
  const agent = ['a', 'b', 'c', 'd', 'e'].find((name) => shardOf(name, 2) !== shardOf(log, 2)) ?? ''
  const file = (name: string) => join(directory, name)
  const write3 = async (from: number) => {
    for (let n = from; n < from + 3; n++) await write(server, agent, n)
    await untilLogged(server, [agent])
  }
  const serverOptions = () => ['--url', server.url, '--api-key', server.rootKey]
  const witness = (...more: string[]) =>
    strandfast('witness', '--state', file('state'), ...serverOptions(), ...more)
  const exportOf = (name: string, to: string) =>
    strandfast('export', '--agent', name, '--force', '--out', file(to), ...serverOptions())
  const verify = (...more: string[]) =>
    strandfast('verify', file('strand'), '--public-key', publicKey, ...more)
  const noteOf = async (path: string, to: string) =>
    writeFileSync(file(to), (await call(server, `GET ${path}`)).text)
  const copyOf = (name: string) => join(directory, `copy-${name}`)

  async function exportBoth(): Promise<void> {
    expect(exportOf(agent, 'strand').status).toBe(0)
    expect(exportOf(log, 'log').status).toBe(0)
  }

  /** Stops the server, replaces directories by earlier copies, and starts it again. */
  async function setBack(...names: string[]): Promise<void> {
    await server.halt()
    for (const name of names) {
      rmSync(join(server.dataDir, name), { recursive: true })
      renameSync(copyOf(name), join(server.dataDir, name))
    }
    server = await startServer({ env, dataDir: server.dataDir })
  }

  async function copy(...names: string[]): Promise<void> {
    await server.halt()
    for (const name of names) cpSync(join(server.dataDir, name), copyOf(name), { recursive: true })
    server = await startServer({ env, dataDir: server.dataDir })
  }

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'strandfast-past-'))
    server = await startServer({ env })
    await write3(0)
    publicKey = (await call(server, `GET /v1/agents/${agent}/status`)).body.public_key
    logKey = (await call(server, `GET /v1/agents/${log}/status`)).body.public_key
  })

  afterAll(async () => {
    await server.stop()
    rmSync(directory, { recursive: true, force: true })
  })

  it('passes before it is set back', async () => {
    const first = witness()
    expect([first.status, first.err]).toEqual([0, ''])
    expect(first.out).toMatch(/^strandfast\/[0-9a-f]{64}: \d+ records, first checkpoint stored\n$/)
    await noteOf('/v1/log/checkpoint', 'old-log')
    await noteOf(`/v1/strand/checkpoint?agent=${agent}`, 'old-strand')
    await copy('shard-0', 'shard-1')
    await write3(3)
    const before = readFileSync(file('state'), 'utf8')
    const second = witness('--log-key', logKey)
    expect(second.out).toMatch(/\d+ records, \d+ before\n$/)
    expect(second.status).toBe(0)
    expect(readFileSync(file('state'), 'utf8')).not.toBe(before)
    await exportBoth()
    const byStrand = verify('--checkpoint', file('old-strand'))
    expect(byStrand).toMatchObject({ status: 0, err: '' })
    expect(byStrand.out).toContain('\ncompared    with the checkpoint of 4 records\n')
    const byLog = verify('--checkpoint', file('old-log'), '--log', file('log'), '--log-key', logKey)
    expect(byLog.status).toBe(0)
    expect(byLog.out).toMatch(/\ncompared {4}with the log of \d+ records, which names 4 of this strand\n/)
    // What the next tests compare with.
    await noteOf('/v1/log/checkpoint', 'old-log')
    await noteOf(`/v1/strand/checkpoint?agent=${agent}`, 'old-strand')
  })

  it('is reported to have lost its newest records, by the witness and by verify', async () => {
    // Otherwise the update of the log at the start would log the same agents as the witness saw last.
    await setBack('shard-0', 'shard-1')
    const stored = readFileSync(file('state'), 'utf8')
    const seen = witness()
    expect(seen.status).toBe(1)
    expect(seen.out).toMatch(/^NOT CONSISTENT: The log was truncated: it had \d+ records and has \d+\n/)
    expect(seen.out).toContain(stored)
    expect(seen.out).toContain((await call(server, 'GET /v1/log/checkpoint')).text)
    expect(readFileSync(file('state'), 'utf8')).toBe(stored)
    await exportBoth()
    expect(verify()).toMatchObject({ status: 0 })
    expect(verify('--checkpoint', file('old-strand'))).toMatchObject({
      status: 1,
      out: 'NOT VERIFIED: The tail was cut: the checkpoint has 7 records, the export 4\n',
    })
    const byLog = verify('--checkpoint', file('old-log'), '--log', file('log'))
    expect(byLog.status).toBe(1)
    expect(byLog.out).toMatch(
      /^NOT VERIFIED: The server log: The tail was cut: the checkpoint has \d+ records/,
    )
  })

  it('is reported to be forked after it has grown past the checkpoint', async () => {
    const seenSize = Number(readFileSync(file('state'), 'utf8').split('\n')[1])
    let size = 0
    for (let n = 100; size <= seenSize; n++) {
      await write(server, agent, n)
      await untilLogged(server, [agent])
      size = Number((await call(server, 'GET /v1/log/checkpoint')).text.split('\n')[1])
    }
    await write3(1_000)
    const seen = witness()
    expect(seen.status).toBe(1)
    expect(seen.out).toMatch(
      /^NOT CONSISTENT: The log was forked: its \d+ records do not begin with the earlier \d+ records\n/,
    )
    await exportBoth()
    expect(verify()).toMatchObject({ status: 0 })
    expect(verify('--checkpoint', file('old-strand'))).toMatchObject({
      status: 1,
      out: 'NOT VERIFIED: The strand was forked at or before record 6: the checkpoint is over other records\n',
    })
    const byLog = verify('--checkpoint', file('old-log'), '--log', file('log'))
    expect(byLog.status).toBe(1)
    expect(byLog.out).toMatch(/^NOT VERIFIED: The server log: The strand was forked at or before record \d+/)
  })

  it('is detected if only the shard of the strand was set back and the log continues', async () => {
    rmSync(file('state'))
    const shard = `shard-${shardOf(agent, 2)}`
    await copy(shard)
    await write3(2_000)
    expect(witness().status).toBe(0)
    await noteOf('/v1/log/checkpoint', 'old-log')
    const { size } = await headNow(server, agent)
    await setBack(shard)
    await exportBoth()
    const past = ['--checkpoint', file('old-log'), '--log', file('log')]
    expect(verify(...past)).toMatchObject({
      status: 1,
      out: `NOT VERIFIED: The tail was cut: the log told of ${size} records, the export has ${size - 3}\n`,
    })
    for (let n = 0; n < 5; n++) await write(server, agent, n)
    // The server logs no more heads of a strand that lacks logged records, and continues with the others.
    await write(server, 'another', 1)
    await untilLogged(server, ['another'])
    expect((await call(server, `GET /v1/log/proof?agent=${agent}`)).body.size).toBe(size)
    await exportBoth()
    // The first logged head that differs: the three lost records may have been logged one by one.
    const { status, out } = verify(...past)
    const [, forkedAt] = /^NOT VERIFIED: The strand was forked at or before record (\d+):/.exec(out) ?? []
    expect(status).toBe(1)
    expect([size - 3, size - 2, size - 1]).toContain(Number(forkedAt))
    // The log itself has only grown.
    expect(witness().status).toBe(0)
  })

  it('is reported with other errors, too', async () => {
    const other = `strandfast/${'ab'.repeat(32)}`
    writeFileSync(file('other'), readFileSync(file('old-log'), 'utf8').replace(/^\S+/, other))
    writeFileSync(file('torn'), 'no note')
    const said = (...more: string[]) => verify(...more).out
    expect(said('--checkpoint', file('torn'))).toContain('The checkpoint is not a valid signed note')
    expect(said('--checkpoint', file('old-log'))).toContain('needs an export of that log')
    expect(said('--checkpoint', file('other'), '--log', file('log'))).toContain(
      'neither of this strand nor of the log',
    )
    expect(verify('--checkpoint', file('none'))).toMatchObject({
      status: 66,
      out: '',
      err: expect.stringContaining('Nothing was verified: ENOENT'),
    })
    const wrongKey = said('--checkpoint', file('old-log'), '--log', file('log'), '--log-key', publicKey)
    expect(wrongKey).toContain('The server log: line')
    const forged = readFileSync(file('old-strand'), 'utf8').replace(/\n7\n/, '\n3\n')
    writeFileSync(file('forged'), forged)
    expect(said('--checkpoint', file('forged'))).toContain('not signed by the key in force after 3 records')
    for (const wrong of [
      ['--log', file('log')],
      ['--checkpoint', file('old-log'), '--log-key', logKey],
      ['--checkpoint', file('old-log'), '--log', file('log'), '--log-key', 'x'],
      ['--checkpoint', file('old-log'), '--log', '-'],
    ]) {
      expect(verify(...wrong).status).toBe(78)
    }
    expect(witness('--log-key', publicKey)).toMatchObject({ status: 1 })
    expect(witness('--log-key', 'x').status).toBe(78)
    expect(strandfast('witness', '--url', server.url, '--api-key', 'k').status).toBe(78)
    const refused = strandfast(
      'witness',
      '--state',
      file('state'),
      '--url',
      server.url,
      '--api-key',
      'no such key',
    )
    expect([refused.status, refused.err]).toEqual([1, expect.stringContaining('401')])
    const unreachable = strandfast(
      'witness',
      '--state',
      file('state'),
      '--url',
      'http://127.0.0.1:1',
      '--api-key',
      'k',
    )
    expect([unreachable.status, unreachable.err]).toEqual([
      75,
      expect.stringContaining('The log could not be checked'),
    ])
  })
})
