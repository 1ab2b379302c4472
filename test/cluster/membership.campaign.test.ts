import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { machineClock } from '../../src/base/clock.js'
import { statementsOf } from '../../src/cluster/database/statements.js'
import { lateAnswers, type MemberEvent, TestMember } from '../support/cluster/members.js'
import { memberChaos } from '../support/cluster/member-chaos.js'
import { Rig } from '../support/cluster/rig.js'
import type { Direction } from '../support/cluster/tcp-proxy.js'
import { MovedClock, movedClockOptions } from '../support/faults/moved-clock.js'
import { count } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'
import { noPostgres } from '../support/postgres/postgres.js'

const tables = 'test'
/** Long enough that a process which waits for a processor keeps its lease. */
const leaseMs = 1_500
const CHAOS_ROUNDS = 2

describe.skipIf(noPostgres)('the members of a cluster', () => {
  let rig: Rig
  const members: TestMember[] = []

  beforeAll(async () => {
    rig = await Rig.start()
  })

  afterAll(async () => {
    await rig?.remove()
  })

  afterEach(async () => {
    expect(lateAnswers(members)).toEqual([])
    for (const member of members.splice(0)) await member.end()
    await rig.restore()
    await rig.primary.query(`DROP TABLE ${tables}_nodes`)
  })

  /** Creates the table. */
  const begin = async () => {
    const [create = ''] = statementsOf(tables).create.filter((one) => one.includes(`${tables}_nodes`))
    await rig.primary.query(create)
  }
  const member = (node: string, urls = rig.urls, lease = leaseMs) => {
    const created = new TestMember(node, urls, { tables, leaseMs: lease })
    members.push(created)
    return created
  }
  const startAll = async (names: string[], lease = leaseMs) => {
    await begin()
    const started = names.map((name) => member(name, rig.urls, lease))
    for (const one of started) await one.sees(...names)
    return started
  }
  const kinds = (of: TestMember | undefined, kind: MemberEvent['event']) =>
    of?.events.filter(({ event }) => event === kind) ?? []

  it('see each other join and leave, agree on owners, and do not expel a node that has left', async () => {
    const [a, b, c] = await startAll(['a', 'b', 'c'])
    const owners = [a, b, c].map((one) => kinds(one, 'members').at(-1)?.owners)
    expect(new Set(owners[0])).toEqual(new Set(['a', 'b', 'c']))
    expect(owners).toEqual([owners[0], owners[0], owners[0]])
    c?.signal('SIGTERM')
    await c?.exited
    expect([c?.exitCode, kinds(c, 'left')]).toEqual([0, [expect.anything()]])
    await a?.sees('a', 'b')
    await b?.sees('a', 'b')
    expect([...kinds(a, 'expelled'), ...kinds(b, 'expelled')]).toEqual([])
    await member('c').joined()
    await a?.sees('a', 'b', 'c')
  })

  it('need different names: a second node of a name is refused while the first is alive, and joins when it is dead', async () => {
    const [a] = await startAll(['a', 'b'])
    const second = member('a')
    await second.reports('taken')
    await second.exited
    expect(second.exitCode).toBe(1)
    a?.signal('SIGKILL')
    const killedAtMs = machineClock()
    const third = await member('a').joined()
    const [joined] = kinds(third, 'joined')
    expect(joined?.incarnation).toBeGreaterThan(kinds(a, 'joined')[0]?.incarnation ?? Infinity)
    // This node, or the other one, has waited for missed heartbeats for that long.
    expect(joined?.atMs).toBeGreaterThan(killedAtMs + leaseMs)
  })

  it('expel a killed node, once', async () => {
    const [a, b, c] = await startAll(['a', 'b', 'c'])
    c?.signal('SIGKILL')
    await a?.sees('a', 'b')
    await b?.sees('a', 'b')
    expect([...kinds(a, 'expelled'), ...kinds(b, 'expelled')].map(({ whom }) => whom)).toEqual([
      `c ${kinds(c, 'joined')[0]?.incarnation}`,
    ])
  })

  it('expel a node that was stopped for longer than its lease: it wakes up, answers nothing and ends', async () => {
    const [a, b, c] = await startAll(['a', 'b', 'c'])
    c?.signal('SIGSTOP')
    await a?.sees('a', 'b')
    await b?.sees('a', 'b')
    const wokenAtMs = machineClock()
    c?.signal('SIGCONT')
    await c?.exited
    expect(c?.exitCode).toBe(3)
    expect(kinds(c, 'ended')).toHaveLength(1)
    expect(kinds(c, 'answered').filter(({ atMs }) => atMs > wokenAtMs)).toEqual([])
  })

  it('expel no node while the database is down for longer than a lease, and answer nothing during that time', async () => {
    const started = await startAll(['a', 'b', 'c'])
    rig.primary.pause()
    const pausedAtMs = machineClock()
    for (const one of started) await one.reports('trouble', pausedAtMs + 2 * leaseMs)
    const answered = started.flatMap((one) => kinds(one, 'answered'))
    expect(answered.filter(({ atMs }) => atMs > pausedAtMs + leaseMs)).toEqual([])
    rig.primary.resume()
    const resumedAtMs = machineClock()
    for (const one of started) await one.reports('answered', resumedAtMs)
    expect(started.flatMap((one) => [...kinds(one, 'expelled'), ...kinds(one, 'ended')])).toEqual([])
  })

  it('expel nodes that are cut off from the database in one or both directions, after their leases have expired', async () => {
    await begin()
    const cuts: Direction[][] = [['requests', 'answers'], ['requests'], ['answers']]
    const ways = await Promise.all(cuts.map(() => rig.proxied()))
    const cutOff = ways.map(({ urls }, nth) => member(`cut-${nth}`, urls))
    const a = member('a')
    // Each node has joined, and knows it.
    for (const one of [a, ...cutOff]) await one.sees('a', 'cut-0', 'cut-1', 'cut-2')
    for (const [nth, { proxies }] of ways.entries())
      for (const proxy of proxies) proxy.hold(...(cuts[nth] ?? []))
    await a.sees('a')
    expect(kinds(a, 'expelled')).toHaveLength(3)
    for (const proxy of ways.flatMap(({ proxies }) => proxies)) proxy.heal()
    for (const one of cutOff) await one.exited
    expect(cutOff.map(({ exitCode }) => exitCode)).toEqual([3, 3, 3])
  })

  it('continue when the primary is lost and a standby is promoted', async () => {
    const started = await startAll(['a', 'b', 'c'], 2 * leaseMs)
    await rig.killPrimary()
    await rig.promote()
    const promotedAtMs = machineClock()
    for (const one of started) await one.reports('answered', promotedAtMs + 2 * leaseMs)
    expect(started.flatMap((one) => [...kinds(one, 'expelled'), ...kinds(one, 'ended')])).toEqual([])
  })

  it('do not depend on the time of day, which may jump', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'strandfast-clock-'))
    const clock = new MovedClock(directory, Date.now() - 30_000)
    await begin()
    const jumping = { options: movedClockOptions, env: clock.env }
    const [a, b] = [member('a'), new TestMember('b', rig.urls, { tables, leaseMs, ...jumping })]
    members.push(b)
    for (const one of [a, b]) await one.sees('a', 'b')
    clock.set(Date.now() + 30_000)
    for (const one of [a, b]) await one.reports('answered', machineClock() + 2 * leaseMs)
    expect([a, b].flatMap((one) => [...kinds(one, 'expelled'), ...kinds(one, 'ended')])).toEqual([])
    clock.close()
    rmSync(directory, { recursive: true })
  })

  it('wait for a node with a longer lease until that lease has expired', async () => {
    await begin()
    const [a, b] = [member('a'), member('b', rig.urls, 3 * leaseMs)]
    for (const one of [a, b]) await one.sees('a', 'b')
    b.signal('SIGSTOP')
    await a.sees('a')
    // The node has answered as long as it ran, by an earlier heartbeat.
    const lastAtMs = kinds(b, 'answered').at(-1)?.atMs ?? Infinity
    expect(kinds(a, 'expelled')[0]?.atMs).toBeGreaterThan(lastAtMs + 2 * leaseMs)
  })

  it('answer nothing after they were expelled, whatever is stopped, killed, cut off and promoted', async () => {
    await begin()
    const chance = seededRandom(runSeed('members'))
    expect(await memberChaos({ rig, tables, leaseMs, chance }, CHAOS_ROUNDS)).toEqual([])
    count({ memberRounds: CHAOS_ROUNDS })
  })
})
