import { lateAnswers, type MemberEvent, TestMember } from './members.js'
import type { Chance } from './register-chaos.js'
import type { Rig, Ways } from './rig.js'

const names = ['a', 'b', 'c']

/** A node, and its ways to the database. */
interface Place {
  node: string
  ways: Ways
  member: TestMember
}

/** What a round needs. */
export interface MemberRounds {
  rig: Rig
  tables: string
  leaseMs: number
  chance: Chance
}

/**
 * Three nodes, to which something is done in each round, two of them at once now and then; who has ended is started again.
 * @returns answers that a node gave after it was expelled: there may be none
 */
export async function memberChaos(about: MemberRounds, rounds: number): Promise<MemberEvent[]> {
  const { rig } = about
  const start = (node: string, { urls }: Ways) => new TestMember(node, urls, about)
  const places: Place[] = []
  for (const node of names) {
    const ways = await rig.ways()
    places.push({ node, ways, member: start(node, ways) })
  }
  const late: MemberEvent[] = []
  try {
    for (let round = 0; round < rounds && late.length === 0; round++) {
      for (const { member } of places) await member.sees(...names)
      await disturb(about, places)
      const ended: TestMember[] = []
      restartEnded(places, ended, start)
      // Those that were expelled and had not found out end meanwhile.
      while (!(await allSeen(places))) restartEnded(places, ended, start)
      late.push(...lateAnswers([...ended, ...places.map(({ member }) => member)]))
      for (const { member } of places) member.events.length = 0
    }
  } finally {
    for (const { member } of places) await member.end()
  }
  return late
}

/** Whether all see each other now; looked at again and again. */
async function allSeen(places: readonly Place[]): Promise<boolean> {
  const seen = places.map(({ member }) => member.sees(...names).then(() => true))
  const exits = places.map(({ member }) => member.exited.then(() => false))
  return Promise.race([Promise.all(seen).then(() => true), ...exits])
}

function restartEnded(
  places: readonly Place[],
  ended: TestMember[],
  start: (node: string, ways: Ways) => TestMember,
): void {
  for (const place of places) {
    if (place.member.isRunning) continue
    ended.push(place.member)
    place.member = start(place.node, place.ways)
  }
}

type Fault = (about: MemberRounds, place: Place) => Promise<void>

async function disturb(about: MemberRounds, places: readonly Place[]): Promise<void> {
  const { chance } = about
  const one = places[Math.floor(chance() * places.length)]
  const other = places[Math.floor(chance() * places.length)]
  const fault = () => faults[Math.floor(chance() * faults.length)]
  if (one === undefined || other === undefined) return
  if (chance() < 0.25) {
    await about.rig.killPrimary()
    await about.rig.promote()
    await about.rig.restore()
    return
  }
  const second = chance() < 0.4 && other !== one ? fault()?.(about, other) : undefined
  await Promise.all([fault()?.(about, one), second])
}

/** A part of some leases. */
const forLeases = ({ leaseMs, chance }: MemberRounds, most: number) =>
  new Promise((resolve) => setTimeout(resolve, chance() * most * leaseMs))

const faults: readonly Fault[] = [
  async (about, { member }) => {
    member.signal('SIGSTOP')
    await forLeases(about, 3)
    member.signal('SIGCONT')
  },
  async (_about, { member }) => {
    member.signal('SIGKILL')
    await member.exited
  },
  async (_about, { member }) => {
    member.signal('SIGTERM')
    await member.exited
  },
  async (about, { ways }) => {
    const { chance } = about
    const way = (['requests', 'answers'] as const)[Math.floor(chance() * 3)]
    for (const proxy of ways.proxies) proxy.hold(...(way === undefined ? [] : [way]))
    await forLeases(about, 2.5)
    for (const proxy of ways.proxies) {
      if (chance() < 0.5) proxy.break()
      proxy.heal()
    }
  },
]
