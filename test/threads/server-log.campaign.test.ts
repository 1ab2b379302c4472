import { cpSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fc } from '../support/fast-check.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../dist/src/base/limits/limits.js'
import { ServerLog } from '../../dist/src/dispatch/duties/server-log.js'
import { ShardThreads } from '../../dist/src/dispatch/threads/shard-threads.js'
import type { Shards } from '../../dist/src/dispatch/links/shards.js'
import type { Command, Outcome } from '../../dist/src/protocol/messages.js'
import { readHeads, type ParsedHeads } from '../../src/proof/heads.js'
import { openEnvironment } from '../../workers/store/open-environment.js'
import { recordsFrom } from '../../workers/store/tables/records.js'
import { testAuthRules } from '../support/shard/shard.js'
import { captureWorkers, type WorkerCapture } from '../support/server/worker-capture.js'

const log = 'server::log'

let directory: string
let capture: WorkerCapture
let threads: ShardThreads
let shards: Shards
let serverLog: ServerLog
let forked: string[]
let failures: string[]
let restarted: () => void

/** Opens the shards of the directory and a server log that is updated only on request. */
async function open(count = 2): Promise<void> {
  const settings = Array.from({ length: count }, (_none, shard) => ({
    shard,
    path: join(directory, `shard-${shard}`),
    masterSeed: Buffer.alloc(32, 7),
    recordBytesMax: limits.recordBytesDefault,
    signing: 'group' as const,
    auth: testAuthRules,
    proposals: { governedAutoApproveSecs: 60 },
  }))
  threads = new ShardThreads(settings, { cacheBytesMax: 0, stallMaxMs: 0 })
  shards = threads.shards
  await threads.start({
    events: () => {},
    died: () => Promise.resolve(),
    notice: () => {},
    catchUp: () => Promise.resolve(),
    replaced: () => undefined,
    restarted: () => undefined,
    resumed(shard) {
      serverLog.restarted(shard)
      restarted()
    },
    hung: () => undefined,
    lost: () => undefined,
  })
  serverLog = newLog()
}

const newLog = () =>
  new ServerLog({
    shards,
    committed: (shard) => threads.figures()[shard]?.records ?? 0,
    intervalMs: 3_600_000,
    readOnly: () => false,
    nowMs: () => Date.now(),
    failed: (reason) => failures.push(reason),
    forked: (strands) => forked.push(...strands),
  })

async function close(): Promise<void> {
  await serverLog.stop()
  await threads.close()
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-log-'))
  capture = captureWorkers()
  forked = []
  failures = []
  restarted = () => {}
  await open()
})

afterEach(async () => {
  await close()
  capture.release()
  rmSync(directory, { recursive: true, force: true })
})

function write(agent: string, n = 0): Promise<Outcome> {
  const body = Buffer.from(JSON.stringify({ data: { n } }))
  const command: Command = { kind: 'recordAppend', agent, emerge: true, body, options: {} }
  return shards.request(agent, command)
}

async function located(agent: string) {
  const outcome = await shards.request(agent, { kind: 'strandLocate', agent })
  if (outcome.kind !== 'located') throw new Error(JSON.stringify(outcome))
  return outcome
}

async function headOf(agent: string) {
  const { strand, headSeq, headHash } = await located(agent)
  return { strand, size: headSeq + 1, hash: headHash }
}

/** The newest logged head of an agent's strand, by the index. */
async function loggedHead(agent: string) {
  const { strand } = await located(agent)
  const size = 2 ** 40
  const outcome = await shards.request(log, { kind: 'logFind', agent: log, strand, size })
  return outcome.kind === 'headLogged' ? outcome.head : undefined
}

/** All records of the log except genesis, read directly from the store. */
async function records(): Promise<ParsedHeads[]> {
  const { shard, agentNo } = await located(log)
  const environment = openEnvironment(join(directory, `shard-${shard}`), 'read')
  try {
    const read = [...recordsFrom(environment, agentNo, { fromSeq: 1, order: 'asc' })]
    return read.map(({ body }) => {
      const heads = readHeads(Buffer.from(body).toString())
      if (heads === undefined) throw new Error('Expected a body of heads')
      return heads
    })
  } finally {
    await environment.root.close()
  }
}

const sizeOfLog = () => serverLog.figures.size
const names = (count: number, prefix = 'agent') =>
  Array.from({ length: count }, (_none, n) => `${prefix}-${n}`)

describe('an update of the server log', { timeout: 180_000 }, () => {
  it('logs every head in records of at most 256 heads, with one clock per shard', async () => {
    const agents = names(700)
    await Promise.all(agents.map((agent) => write(agent)))
    expect(await serverLog.update()).toBe(true)
    for (const agent of agents) expect(await loggedHead(agent)).toEqual(await headOf(agent))
    const all = await records()
    expect(all.map(({ heads }) => heads.length)).toEqual([256, 256, 188])
    expect(new Set(all.flatMap(({ heads }) => heads.map(({ strand }) => strand))).size).toBe(700)
    expect(all.every(({ clocks }) => clocks.length === 2)).toBe(true)
    expect(sizeOfLog()).toBe(4)
  })

  it('logs more heads than fit into memory in several commits', async () => {
    await serverLog.update()
    const agents = names(3 * limits.logHeadsMax)
    await Promise.all(agents.map((agent) => write(agent)))
    const shard = shards.shardOf(log)
    await serverLog.update()
    const before = threads.figures()[shard]?.commits ?? 0
    await Promise.all(agents.map((agent) => write(agent, 1)))
    const written = threads.figures()[shard]?.commits ?? 0
    await serverLog.update()
    expect((threads.figures()[shard]?.commits ?? 0) - written).toBeGreaterThan(2)
    expect(written).toBeGreaterThan(before)
    for (const agent of agents) expect(await loggedHead(agent)).toEqual(await headOf(agent))
  })

  it('logs a strand once however much was written to it, and nothing if nothing was written', async () => {
    for (let n = 0; n < 5_000; n += 100) {
      await Promise.all(Array.from({ length: 100 }, (_none, index) => write('busy', n + index)))
    }
    await serverLog.update()
    expect((await records()).map(({ heads }) => heads)).toEqual([[await headOf('busy')]])
    for (let update = 0; update < 3; update++) expect(await serverLog.update()).toBe(true)
    expect(sizeOfLog()).toBe(2)
  })

  it('continues from the log after a restart, and logs nothing twice', async () => {
    await write('a')
    await serverLog.update()
    await write('b')
    await close()
    await open()
    await write('c')
    await serverLog.update()
    const heads = (await records()).map((one) => one.heads.map(({ strand }) => strand))
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map(async (agent) => (await headOf(agent)).strand))
    expect(heads[0]).toEqual([a])
    expect(heads.slice(1).flat().sort()).toEqual([b, c].sort())
  })

  it('logs the latest heads before it stops, within a time limit', async () => {
    await write('a')
    await serverLog.finish(60_000)
    expect(await loggedHead('a')).toEqual(await headOf('a'))
    await write('b')
    await serverLog.stop()
    await serverLog.finish(60_000)
    expect(sizeOfLog()).toBe(2)
    expect(failures).toEqual([])
  })

  it('logs strands that existed before the log was switched on', async () => {
    const agents = names(600, 'old')
    await Promise.all(agents.map((agent) => write(agent)))
    await close()
    await open()
    await serverLog.update()
    for (const agent of agents) expect(await loggedHead(agent)).toEqual(await headOf(agent))
  })

  it('logs every head that moved, after the number of shards has changed', async () => {
    await close()
    rmSync(directory, { recursive: true })
    await open(1)
    await write('a')
    await serverLog.update()
    const size = sizeOfLog()
    await write('b')
    const b = await headOf('b')
    await close()
    // The log is in shard 0 of three shards, too.
    await open(3)
    await serverLog.update()
    const last = (await records()).at(-1)
    expect(last?.heads).toEqual([b])
    expect(last?.clocks).toHaveLength(3)
    expect(sizeOfLog()).toBe(size + 1)
    await serverLog.update()
    expect(sizeOfLog()).toBe(size + 1)
  })

  it('restores the index of the log after it was lost', async () => {
    const agents = names(30)
    for (const agent of agents) {
      await write(agent)
      await serverLog.update()
    }
    const { shard } = await located(log)
    await close()
    const environment = openEnvironment(join(directory, `shard-${shard}`), 'write')
    for (const key of Array.from(environment.toldHeads.getKeys())) environment.toldHeads.remove(key)
    environment.toldStrands.clearSync()
    await environment.root.close()
    await open()
    expect(await loggedHead('agent-3')).toBeUndefined()
    await serverLog.update()
    for (const agent of agents) expect(await loggedHead(agent)).toEqual(await headOf(agent))
    expect(sizeOfLog()).toBe(31)
  })

  it('can be requested for a single head', async () => {
    await write('a', 1)
    const before = { agent: 'a', ...(await headOf('a')) }
    await write('a', 2)
    const { agent, ...head } = { agent: 'a', ...(await headOf('a')) }
    expect(await serverLog.logHead({ agent, ...head })).toBe(true)
    expect((await records()).at(-1)?.heads).toEqual([head])
    // An older head is not logged again.
    expect(await serverLog.logHead(before)).toBe(true)
    expect((await records()).at(-1)?.heads).toEqual([head])
    expect(forked).toEqual([])
  })

  it('fails while a shard does not serve, and misses no head once it serves', async () => {
    await write('a')
    await write('b')
    await serverLog.update()
    for (const agent of ['a', 'b']) {
      const again = new Promise<void>((resolve) => (restarted = resolve))
      await write(agent, 1)
      capture.fail(capture.latest(`shard-${shards.shardOf(agent)}`))
      while (await serverLog.update()) await write(agent, 2).catch(() => {})
      await again
      expect(await serverLog.update()).toBe(true)
      for (const one of ['a', 'b']) expect(await loggedHead(one)).toEqual(await headOf(one))
    }
    expect(failures.length).toBeGreaterThan(1)
  })

  it('reports a fork if a shard returns with another history', async () => {
    // An agent in another shard than the log, which must not change.
    const agent = names(20).find((name) => shards.shardOf(name) !== shards.shardOf(log)) ?? ''
    await write(agent, 1)
    await serverLog.update()
    const shard = shards.shardOf(agent)
    const path = join(directory, `shard-${shard}`)
    const copy = join(directory, 'copy')
    await close()
    cpSync(path, copy, { recursive: true })
    await open()
    await write(agent, 2)
    await serverLog.update()
    const before = await headOf(agent)
    await close()
    rmSync(path, { recursive: true })
    renameSync(copy, path)
    await open()
    await write(agent, 3)
    expect(await serverLog.update()).toBe(true)
    expect(forked).toEqual([before.strand])
    expect(await loggedHead(agent)).toEqual(before)
    // If the strand were logged again, the log would confirm both histories; other strands are still logged.
    await write(agent, 4)
    await write('another')
    expect(await serverLog.update()).toBe(true)
    expect(forked).toEqual([before.strand, before.strand])
    expect(await loggedHead(agent)).toEqual(before)
    expect(await loggedHead('another')).toEqual(await headOf('another'))
  })

  it('reports a fork if a strand returns shorter and grows beyond the logged size', async () => {
    const agent = names(20).find((name) => shards.shardOf(name) !== shards.shardOf(log)) ?? ''
    await write(agent, 1)
    await serverLog.update()
    const path = join(directory, `shard-${shards.shardOf(agent)}`)
    await close()
    cpSync(path, join(directory, 'copy'), { recursive: true })
    await open()
    await write(agent, 2)
    await write(agent, 3)
    await serverLog.update()
    const before = await headOf(agent)
    await close()
    rmSync(path, { recursive: true })
    renameSync(join(directory, 'copy'), path)
    await open()
    await write(agent, 4)
    await serverLog.update()
    expect(forked).toEqual([before.strand])
    for (const n of [5, 6, 7]) await write(agent, n)
    await serverLog.update()
    expect(forked).toEqual([before.strand, before.strand])
    expect(await loggedHead(agent)).toEqual(before)
  })

  it('is not complete while a record does not match its checksum, also after a restart', async () => {
    const agent = names(20).find((name) => shards.shardOf(name) !== shards.shardOf(log)) ?? ''
    await write('whole')
    expect(await serverLog.update()).toBe(true)
    await write(agent, 1)
    const { shard } = await located(agent)
    // Only the last block is read at each start, so the damage is in the block before it.
    const sibling = names(40).findLast((name) => shards.shardOf(name) === shard) ?? ''
    await write(sibling)
    await close()
    let damaged: Buffer | undefined
    const flip = () => {
      const environment = openEnvironment(join(directory, `shard-${shard}`), 'write')
      damaged ??= Buffer.from([...environment.blocks.getKeys({ reverse: true, limit: 2 })][1] ?? [])
      const block = Buffer.from(environment.blocks.get(damaged) ?? [])
      block[block.length - 1] = (block[block.length - 1] ?? 0) ^ 1
      environment.blocks.putSync(damaged, block)
      return environment.root.close()
    }
    await flip()
    for (let start = 0; start < 2; start++) {
      await open()
      await write('whole', start)
      expect(await serverLog.update()).toBe(true)
      expect(await loggedHead('whole')).toEqual(await headOf('whole'))
      expect(serverLog.figures.completeAtMs).toBe(0)
      expect(failures.splice(0)).toEqual([
        expect.stringContaining(`A record of shard ${shard} does not match`),
      ])
      await close()
    }
    await flip()
    await open()
    expect(await serverLog.update()).toBe(true)
    expect(serverLog.figures.completeAtMs).toBeGreaterThan(0)
    expect(await loggedHead(agent)).toEqual(await headOf(agent))
  })
})

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('write' as const), agent: fc.nat({ max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('look' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('die' as const), agent: fc.nat({ max: 5 }) }) },
)

it(
  'the server log has the newest head of every strand after every update, and logged sizes only grow',
  { timeout: 180_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const wrote = new Set<string>()
        for (const one of [...steps, { do: 'look' as const }]) {
          if (one.do === 'write') {
            const agent = `agent-${one.agent}`
            if ((await write(agent)).kind === 'reply') wrote.add(agent)
          } else if (one.do === 'restart') {
            await close()
            await open()
          } else if (one.do === 'die') {
            const again = new Promise<void>((resolve) => (restarted = resolve))
            capture.fail(capture.latest(`shard-${shards.shardOf(`agent-${one.agent}`)}`))
            await again
          } else {
            expect(await serverLog.update()).toBe(true)
            for (const agent of wrote) expect(await loggedHead(agent)).toEqual(await headOf(agent))
          }
        }
        const sizes = new Map<string, number>()
        for (const { heads } of await records()) {
          for (const { strand, size } of heads) {
            expect(size).toBeGreaterThan(sizes.get(strand) ?? 0)
            sizes.set(strand, size)
          }
        }
      }),
      { numRuns: 4 },
    )
  },
)
