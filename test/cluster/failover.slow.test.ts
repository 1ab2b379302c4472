import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { statementsOf } from '../../src/cluster/database/statements.js'
import { eventually } from '../support/eventually.js'
import { plantedFaults } from '../support/cluster/planted-faults.js'
import {
  anotherHistory,
  gap,
  race,
  RegisterRound,
  segmentOf,
  type Subject,
  unreplicated,
} from '../support/cluster/register-rounds.js'
import { Rig } from '../support/cluster/rig.js'
import { noPostgres } from '../support/postgres/postgres.js'

const statements = statementsOf('test')
const real: Subject = { statements }
const writer = fileURLToPath(new URL('../support/cluster/register-process.mjs', import.meta.url))

describe.skipIf(noPostgres).each([15, 18] as const)('the log in PostgreSQL %s with standbys', (major) => {
  let rig: Rig
  let round: RegisterRound

  beforeAll(async () => {
    rig = await Rig.start(major)
    for (const statement of statements.create) await rig.primary.query(statement)
  })

  afterAll(async () => {
    await rig?.remove()
  })

  afterEach(async () => {
    await round.close()
    await rig.restore()
  })

  const roundOf = (subject = real) => (round = new RegisterRound(rig, subject))

  it.each(['nothing', 'pg_cancel_backend', 'pg_terminate_backend'] as const)(
    'keeps what it acknowledged when the primary dies with unreplicated commits whose wait %s ended',
    async (by) => {
      expect(await unreplicated(roundOf(), by)).toEqual([])
    },
  )

  it('has one winner for each number, no gap and one history', async () => {
    roundOf()
    expect([await race(round), await gap(round), await anotherHistory(round)]).toEqual([[], [], []])
  })

  it('stays one chain when two processes write to it and the primary dies', async () => {
    const { shard } = await roundOf().begin()
    const run = promisify(execFile)
    const writing = ['one', 'two'].map((name) =>
      run(process.execPath, [writer, rig.urls.join(' '), 'test', `${shard}`, name, '30']),
    )
    await eventually(async () => (await round.headers(shard)).length > 20)
    await rig.killPrimary()
    await rig.promote()
    const acknowledged = (await Promise.all(writing)).flatMap(({ stdout }) => stdout.trim().split('\n'))
    expect(acknowledged).toHaveLength(60)
    const headers = await round.headers(shard)
    // Acknowledged segments exist once; the rest is segment 0.
    expect(headers.slice(1).sort()).toEqual(acknowledged.sort())
  })
})

describe.skipIf(noPostgres)('a register whose database fails', () => {
  let rig: Rig
  let round: RegisterRound

  beforeAll(async () => {
    rig = await Rig.start()
    for (const statement of statements.create) await rig.primary.query(statement)
  })

  afterAll(async () => {
    await rig?.remove()
  })

  afterEach(async () => {
    await round.close()
    await rig.restore()
  })

  const roundOf = (subject = real) => (round = new RegisterRound(rig, subject))

  it('waits while no standby answers, and has the segment when one is back', async () => {
    const base = await roundOf().begin()
    const { log } = await round.register()
    await log.append(base, segmentOf(base.shard, 1, 'replicated'))
    for (const standby of rig.standbys) standby.pause()
    let isAnswered = false
    const appended = log
      .append(segmentOf(base.shard, 1, 'replicated'), segmentOf(base.shard, 2, 'alone'))
      .finally(() => (isAnswered = true))
    await eventually(async () => (await rig.waiting()) === 1)
    expect(isAnswered).toBe(false)
    rig.standbys[1]?.resume()
    expect(await appended).toEqual({ kind: 'durable' })
    rig.standbys[0]?.resume()
  })

  it('reports "lost" after a segment that was seen, never acknowledged, and lost with the primary', async () => {
    const base = await roundOf().begin()
    const [{ log: writing }, { log: other }] = [await round.register(), await round.register()]
    await rig.cutOffStandbys()
    const seen = segmentOf(base.shard, 1, 'seen')
    const appended = writing.append(base, seen)
    await eventually(async () => (await rig.endWaiting('pg_terminate_backend')) > 0)
    await eventually(async () => (await round.headers(base.shard)).length === 2)
    await rig.killPrimary()
    await rig.promote()
    const next = segmentOf(base.shard, 1, 'another writer')
    const outcomes = [await other.append(base, next), await appended]
    // The first of the two has won the number, and both know it.
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['durable', 'fenced'])
    const there = (await round.headers(base.shard))[1] === 'seen' ? next : seen
    expect(await other.append(there, segmentOf(base.shard, 2, 'behind it'))).toEqual({ kind: 'lost' })
  })

  it('is fenced if its append was delayed and another writer has won the number', async () => {
    const base = await roundOf().begin()
    const [{ log, proxied }, { log: other }] = [await round.register(), await round.register()]
    const first = segmentOf(base.shard, 1, 'first')
    await log.append(base, first)
    for (const proxy of proxied.proxies) proxy.hold('requests')
    const late = log.append(first, segmentOf(base.shard, 2, 'late'))
    const taken = segmentOf(base.shard, 2, 'in time')
    expect(await other.append(first, taken)).toEqual({ kind: 'durable' })
    for (const proxy of proxied.proxies) proxy.heal()
    expect(await late).toEqual({ kind: 'fenced' })
    expect(await other.append(taken, segmentOf(base.shard, 3, 'behind it'))).toEqual({ kind: 'durable' })
  })

  it('accepts exactly one of a late append and its replacement', async () => {
    const base = await roundOf().begin()
    const [{ proxied }, { log: other }] = [await round.register(), await round.register()]
    const clock = { nowMs: 0 }
    const log = round.over(proxied.urls, () => clock.nowMs)
    const first = segmentOf(base.shard, 1, 'first')
    await log.append(base, first)
    for (const proxy of proxied.proxies) proxy.hold('answers')
    const late = segmentOf(base.shard, 2, 'late')
    const appended = log.append(first, late)
    await eventually(async () => (await round.headers(base.shard)).length === 3)
    for (const proxy of proxied.proxies) proxy.break()
    clock.nowMs = 60_000
    expect(await appended).toMatchObject({ kind: 'unknown' })
    expect(await other.append(first, segmentOf(base.shard, 2, 'open'))).toEqual({ kind: 'fenced' })
    expect(await other.append(late, segmentOf(base.shard, 3, 'open'))).toEqual({ kind: 'durable' })
  })

  it.each(plantedFaults)('is caught when it has $name', async ({ round: check, ...subject }) => {
    expect(await check(roundOf(subject))).not.toEqual([])
  })
})
