import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { machineClock } from '../../src/base/machine-clock.js'
import { statementsOf } from '../../src/outbound/cluster/statements.js'
import { lateAnswers, type MemberEvent, TestMember } from '../support/cluster/members.js'
import { Rig } from '../support/cluster/rig.js'
import { noPostgres } from '../support/postgres/postgres.js'

const tables = 'test'
const leaseMs = 1_000

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

  /** Makes the table. */
  const begin = async () => {
    const [create = ''] = statementsOf(tables).create.filter((one) => one.includes(`${tables}_nodes`))
    await rig.primary.query(create)
  }
  const member = (node: string, urls = rig.urls, lease = leaseMs) => {
    const made = new TestMember(node, urls, { tables, leaseMs: lease })
    members.push(made)
    return made
  }
  const startAll = async (...names: string[]) => {
    await begin()
    const started = names.map((name) => member(name))
    for (const one of started) await one.sees(...names)
    return started
  }
  const kinds = (of: TestMember | undefined, kind: MemberEvent['event']) =>
    of?.events.filter(({ event }) => event === kind) ?? []

  it('see each other join and leave, and one that has left nobody has to expel', async () => {
    const [a, b, c] = await startAll('a', 'b', 'c')
    c?.signal('SIGTERM')
    await c?.exited
    expect([c?.exitCode, kinds(c, 'left')]).toEqual([0, [expect.anything()]])
    await a?.sees('a', 'b')
    await b?.sees('a', 'b')
    expect([...kinds(a, 'expelled'), ...kinds(b, 'expelled')]).toEqual([])
    await member('c').joined()
    await a?.sees('a', 'b', 'c')
  })

  it('have a name each: a second one of a name is refused while the first beats, and may join when it is dead', async () => {
    const [a] = await startAll('a', 'b')
    const second = member('a')
    await second.told('taken')
    await second.exited
    expect(second.exitCode).toBe(1)
    const before = machineClock()
    a?.signal('SIGKILL')
    const third = await member('a').joined()
    expect(kinds(third, 'joined')[0]).toMatchObject({ incarnation: 2 })
    expect((kinds(third, 'joined')[0]?.atMs ?? 0) - before).toBeGreaterThan(leaseMs / 2)
  })

  it('expel who was killed, once', async () => {
    const [a, b, c] = await startAll('a', 'b', 'c')
    c?.signal('SIGKILL')
    await a?.sees('a', 'b')
    await b?.sees('a', 'b')
    expect([...kinds(a, 'expelled'), ...kinds(b, 'expelled')].map(({ whom }) => whom)).toEqual(['c 1'])
  })

  it('expel who was stopped for longer than its lease: it goes on, answers nothing and ends', async () => {
    const [a, b, c] = await startAll('a', 'b', 'c')
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

  it('keep who was stopped for less', async () => {
    const [a, b] = await startAll('a', 'b')
    b?.signal('SIGSTOP')
    const stoppedAtMs = machineClock()
    await a?.told('answered', stoppedAtMs + leaseMs / 2)
    b?.signal('SIGCONT')
    await b?.told('answered', machineClock())
    await a?.told('answered', machineClock() + leaseMs)
    expect([...kinds(a, 'expelled'), ...kinds(b, 'ended')]).toEqual([])
  })

  it('expel nobody where the database was away for longer than a lease, and answer nothing meanwhile', async () => {
    const started = await startAll('a', 'b', 'c')
    for (const server of rig.servers) server.pause()
    const pausedAtMs = machineClock()
    for (const one of started) await one.told('trouble', pausedAtMs)
    const allQuietAtMs = machineClock()
    await new Promise((resolve) => setTimeout(resolve, 2 * leaseMs))
    const answered = started
      .flatMap((one) => kinds(one, 'answered'))
      .filter(({ atMs }) => atMs > pausedAtMs + leaseMs)
    for (const server of rig.servers) server.resume()
    const resumedAtMs = machineClock()
    expect(answered.filter(({ atMs }) => atMs < resumedAtMs)).toEqual([])
    expect(allQuietAtMs).toBeGreaterThan(pausedAtMs)
    for (const one of started) await one.told('answered', resumedAtMs)
    expect(started.flatMap((one) => [...kinds(one, 'expelled'), ...kinds(one, 'ended')])).toEqual([])
  })

  it('expel who is cut off from the database, whose lease was over before that', async () => {
    await begin()
    const ways = await rig.ways()
    const [a, b] = [member('a'), member('b')]
    const c = member('c', ways.urls)
    for (const one of [a, b, c]) await one.sees('a', 'b', 'c')
    for (const proxy of ways.proxies) proxy.hold()
    await a.sees('a', 'b')
    await b.sees('a', 'b')
    for (const proxy of ways.proxies) proxy.heal()
    await c.exited
    expect(c.exitCode).toBe(3)
  })

  it.each(['requests', 'answers'] as const)(
    'expel who is cut off one way: its %s are held',
    async (direction) => {
      await begin()
      const ways = await rig.ways()
      const [a, b] = [member('a'), member('b', ways.urls)]
      for (const one of [a, b]) await one.sees('a', 'b')
      for (const proxy of ways.proxies) proxy.hold(direction)
      await a.sees('a')
      for (const proxy of ways.proxies) proxy.heal()
      await b.exited
      expect(b.exitCode).toBe(3)
    },
  )

  it('go on where the primary is lost and a standby takes its place', async () => {
    const started = await startAll('a', 'b', 'c')
    await rig.killPrimary()
    await rig.promote()
    const promotedAtMs = machineClock()
    for (const one of started) await one.told('answered', promotedAtMs + leaseMs)
    expect(started.flatMap((one) => [...kinds(one, 'expelled'), ...kinds(one, 'ended')])).toEqual([])
  })

  it('wait for one with a longer lease for as long as that', async () => {
    await begin()
    const [a, b] = [member('a'), member('b', rig.urls, 3 * leaseMs)]
    for (const one of [a, b]) await one.sees('a', 'b')
    b.signal('SIGSTOP')
    await a.sees('a')
    const last = kinds(b, 'answered').at(-1)?.atMs ?? Infinity
    expect((kinds(a, 'expelled')[0]?.atMs ?? 0) - last).toBeGreaterThan(2.5 * leaseMs)
  })
})
