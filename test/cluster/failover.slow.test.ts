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
    'keeps what it acknowledged where the primary dies with commits that no standby has, whose waiting %s ended',
    async (by) => {
      expect(await unreplicated(roundOf(), by)).toEqual([])
    },
  )

  it('has one winner for each number, no gap and one history', async () => {
    roundOf()
    expect([await race(round), await gap(round), await anotherHistory(round)]).toEqual([[], [], []])
  })

  it('stays one chain where two processes write to it and the primary dies', async () => {
    const { shard } = await roundOf().begin()
    const run = promisify(execFile)
    const writing = ['one', 'two'].map((name) =>
      run(process.execPath, [writer, rig.urls.join(' '), 'test', `${shard}`, name, '30']),
    )
    await eventually(async () => (await round.headers(shard)).length > 20)
    await rig.killPrimary()
    await rig.promote()
    const told = (await Promise.all(writing)).flatMap(({ stdout }) => stdout.trim().split('\n'))
    expect(told).toHaveLength(60)
    const headers = await round.headers(shard)
    // What was acknowledged is there, once; the rest is the segment 0.
    expect(headers.slice(1).sort()).toEqual(told.sort())
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
    let isTold = false
    const appended = log
      .append(segmentOf(base.shard, 1, 'replicated'), segmentOf(base.shard, 2, 'alone'))
      .finally(() => (isTold = true))
    await eventually(async () => (await rig.waiting()) === 1)
    expect(isTold).toBe(false)
    rig.standbys[1]?.resume()
    expect(await appended).toEqual({ kind: 'durable' })
    rig.standbys[0]?.resume()
  })

  it('says lost behind a segment that was seen, never acknowledged, and went with the primary', async () => {
    const base = await roundOf().begin()
    const [{ log: writing }, { log: other }] = [await round.register(), await round.register()]
    await rig.cutOffStandbys()
    const seen = segmentOf(base.shard, 1, 'seen')
    const appended = writing.append(base, seen)
    await eventually(async () => (await rig.endWaiting('pg_terminate_backend')) > 0)
    await eventually(async () => (await round.headers(base.shard)).length === 2)
    await rig.killPrimary()
    await rig.promote()
    const next = segmentOf(base.shard, 1, 'somebody else')
    const outcomes = [await other.append(base, next), await appended]
    // Whoever of the two came first has the place, and both know.
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['durable', 'fenced'])
    const there = (await round.headers(base.shard))[1] === 'seen' ? next : seen
    expect(await other.append(there, segmentOf(base.shard, 2, 'behind it'))).toEqual({ kind: 'lost' })
  })

  it('is fenced where its append was held up, and another one took the place meanwhile', async () => {
    const base = await roundOf().begin()
    const [{ log, ways }, { log: other }] = [await round.register(), await round.register()]
    const first = segmentOf(base.shard, 1, 'first')
    await log.append(base, first)
    for (const proxy of ways.proxies) proxy.hold('requests')
    const late = log.append(first, segmentOf(base.shard, 2, 'late'))
    const taken = segmentOf(base.shard, 2, 'in time')
    expect(await other.append(first, taken)).toEqual({ kind: 'durable' })
    for (const proxy of ways.proxies) proxy.heal()
    expect(await late).toEqual({ kind: 'fenced' })
    expect(await other.append(taken, segmentOf(base.shard, 3, 'behind it'))).toEqual({ kind: 'durable' })
  })

  it('lets a straggler in or another one, where nobody waits for the straggler any more', async () => {
    const base = await roundOf().begin()
    const [{ ways }, { log: other }] = [await round.register(), await round.register()]
    const clock = { nowMs: 0 }
    const log = round.over(ways.urls, () => clock.nowMs)
    const first = segmentOf(base.shard, 1, 'first')
    await log.append(base, first)
    for (const proxy of ways.proxies) proxy.hold('answers')
    const straggler = segmentOf(base.shard, 2, 'straggler')
    const given = log.append(first, straggler)
    await eventually(async () => (await round.headers(base.shard)).length === 3)
    for (const proxy of ways.proxies) proxy.break()
    clock.nowMs = 60_000
    expect(await given).toMatchObject({ kind: 'unknown' })
    expect(await other.append(first, segmentOf(base.shard, 2, 'open'))).toEqual({ kind: 'fenced' })
    expect(await other.append(straggler, segmentOf(base.shard, 3, 'open'))).toEqual({ kind: 'durable' })
  })

  it.each(plantedFaults)('is found out when it has $name', async ({ round: check, ...subject }) => {
    expect(await check(roundOf(subject))).not.toEqual([])
  })
})
