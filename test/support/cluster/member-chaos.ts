import { lateAnswers, type MemberEvent, TestMember } from './members.js'
import type { Chance } from './register-chaos.js'
import type { Rig, ProxiedServers } from './rig.js'

const names = ['a', 'b', 'c']

/** A node with its proxied connections to the database. */
interface Participant {
  node: string
  ways: ProxiedServers
  member: TestMember
}

/** The input of the rounds. */
export interface MemberRounds {
  rig: Rig
  tables: string
  leaseMs: number
  chance: Chance
}

/**
 * Runs three nodes with a fault in each round, sometimes two faults together; a node that has ended is
 * started again.
 * @returns answers that a node gave after it was expelled: must be empty
 */
export async function memberChaos(about: MemberRounds, rounds: number): Promise<MemberEvent[]> {
  const { rig } = about
  const start = (node: string, { urls }: ProxiedServers) => new TestMember(node, urls, about)
  const participants: Participant[] = []
  for (const node of names) {
    const ways = await rig.proxied()
    participants.push({ node, ways, member: start(node, ways) })
  }
  const lateAnswerEvents: MemberEvent[] = []
  try {
    for (let round = 0; round < rounds && lateAnswerEvents.length === 0; round++) {
      for (const { member } of participants) await member.sees(...names)
      await disturb(about, participants)
      const ended: TestMember[] = []
      restartEnded(participants, ended, start)
      // Expelled nodes that did not know it yet end during this wait.
      while (!(await allSeen(participants))) restartEnded(participants, ended, start)
      lateAnswerEvents.push(...lateAnswers([...ended, ...participants.map(({ member }) => member)]))
      for (const { member } of participants) member.events.length = 0
    }
  } finally {
    for (const { member } of participants) await member.end()
  }
  return lateAnswerEvents
}

/** Whether all nodes see each other, before one of them exits. */
async function allSeen(participants: readonly Participant[]): Promise<boolean> {
  const seen = participants.map(({ member }) => member.sees(...names).then(() => true))
  const exits = participants.map(({ member }) => member.exited.then(() => false))
  return Promise.race([Promise.all(seen).then(() => true), ...exits])
}

function restartEnded(
  participants: readonly Participant[],
  ended: TestMember[],
  start: (node: string, ways: ProxiedServers) => TestMember,
): void {
  for (const participant of participants) {
    if (participant.member.isRunning) continue
    ended.push(participant.member)
    participant.member = start(participant.node, participant.ways)
  }
}

type Fault = (about: MemberRounds, participant: Participant) => Promise<void>

async function disturb(about: MemberRounds, participants: readonly Participant[]): Promise<void> {
  const { chance } = about
  const one = participants[Math.floor(chance() * participants.length)]
  const other = participants[Math.floor(chance() * participants.length)]
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

/** Waits for a random part of `most` leases. */
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
    const direction = (['requests', 'answers'] as const)[Math.floor(chance() * 3)]
    for (const proxy of ways.proxies) proxy.hold(...(direction === undefined ? [] : [direction]))
    await forLeases(about, 2.5)
    for (const proxy of ways.proxies) {
      if (chance() < 0.5) proxy.break()
      proxy.heal()
    }
  },
]
