import { setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Checker } from '../../../../scripts/crash-loop/check.mjs'
import { seededRandom } from '../../../../scripts/crash-loop/seeded-random.mjs'
import type { Fault } from './fault.js'
import { ClusterLoad } from './load.js'
import { type Router, startRouter } from './router.js'
import { differences } from './stores.js'
import { ThreeNodes } from './three-nodes.js'

/** Rounds after which all strands are verified; the others look at what was answered, and where strands end. */
const VERIFIED_EVERY = 4
/** Calls that are answered before a fault, and after it: more come while it lasts. */
const CALLS = 60
/** How long a round may take on a busy machine unless more or less is said, milliseconds. */
const ROUND_MS = 300_000
/** How long a part of a round may take until all are asked what they say of it, milliseconds. */
const SLOW_MS = 8_000
/** Tokens of earlier rounds that are tried again. */
const TOKENS = 12

/** How rounds are run. */
export interface RoundsMaking {
  seed: number
  /** The faults of the rounds, in their order. */
  faults: readonly Fault[]
  /** The program of the nodes, in place of the built one. */
  program?: string
  /** Whether nodes have links, so that all of them answer. */
  linked: boolean
  /** How long a round may take, milliseconds. */
  roundMs?: number
  /** Told of each round. */
  report?(line: string): void
}

/** What rounds have found. */
export interface RoundsFound {
  /** What must not be, with the round that showed it: nothing where all is well. */
  breaches: string[]
  rounds: number
  /** What ended processes of nodes said. */
  ends: string[]
}

/**
 * A cluster under load, to which something happens in each round; then everything that was answered is looked at. It ends with
 * the first round that shows what must not be. In the end all nodes are killed and their stores compared.
 */
export async function clusterRounds({
  seed,
  faults,
  program,
  linked,
  roundMs = ROUND_MS,
  report = () => {},
}: RoundsMaking): Promise<RoundsFound> {
  const random = seededRandom(seed)
  const nodes = await ThreeNodes.start({ program, linked })
  const load = await ClusterLoad.on(nodes, random)
  const router = await startRouter(nodes.client)
  const checks = new Checks(load, router, nodes)
  const breaches: string[] = []
  let rounds = 0
  try {
    for (const fault of faults) {
      rounds += 1
      const whole = rounds === faults.length
      const strands = whole || rounds % VERIFIED_EVERY === 0
      const laps = new Laps()
      const playing = round(fault, { nodes, load, random, laps, check: () => checks.run({ whole, strands }) })
      const found = await Promise.race([playing, pause(roundMs, undefined)])
      const about = `Round ${rounds}, ${fault.name}, ${linked ? 'with' : 'without'} links`
      if (found === undefined) {
        const state = await describe(nodes, load)
        return { breaches: [`${about}: it does not end, after ${laps}`, ...state], rounds, ends: [] }
      }
      breaches.push(...found.map((text) => `${about}: ${text}`))
      const silence = `nobody answered for ${Math.round(load.known.takeSilence())} ms`
      report(`round ${rounds}/${faults.length}: ${fault.name}; ${laps}; ${silence}`)
      if (laps.longestMs > SLOW_MS) report(`It took long: ${(await describe(nodes, load)).join('\n')}`)
      if (breaches.length > 0) break
    }
    await load.end()
    await Promise.all(nodes.nodes.map((node) => node.kill()))
    breaches.push(...load.known.breaches, ...(await differences(nodes).catch(failed)))
    const ends = nodes.nodes.flatMap((node) => node.ends)
    return { breaches: [...breaches, ...ends.flatMap(wrongEnds)], rounds, ends }
  } finally {
    nodes.client.end()
    await load.end()
    router.stop()
    await nodes.remove()
  }
}

/** What a round is made with. */
interface RoundParts {
  nodes: ThreeNodes
  load: ClusterLoad
  random: () => number
  laps: Laps
  check(): Promise<string[]>
}

/** Load, with a fault in the midst of it, and what is found when all nodes run and one serves again. */
async function round(fault: Fault, { nodes, load, random, laps, check }: RoundParts): Promise<string[]> {
  load.begin()
  await load.progress(CALLS)
  laps.end('load')
  await nodes.shared()
  laps.end('shares')
  await fault.act(nodes, random)
  laps.end('fault')
  await nodes.allWell()
  laps.end('whole again')
  await load.progress(CALLS)
  await load.stop()
  laps.end('load')
  const found = await check()
  laps.end('checks')
  return found
}

/** What all say of themselves, for a reader of what went wrong. */
async function describe(nodes: ThreeNodes, load: ClusterLoad): Promise<string[]> {
  const ofNodes = await Promise.all(nodes.nodes.map((node) => node.describe()))
  const streams = load.watchers.map((watcher) => watcher.describe())
  return [...ofNodes, await nodes.rig.describe(), nodes.client.describe(), ...streams]
}

/** How long the parts of a round took, for who reads what it costs. */
class Laps {
  readonly #startedAtMs = performance.now()
  #atMs = this.#startedAtMs
  readonly #laps: { what: string; ms: number }[] = []

  end(what: string): void {
    const nowMs = performance.now()
    this.#laps.push({ what, ms: Math.round(nowMs - this.#atMs) })
    this.#atMs = nowMs
  }

  get longestMs(): number {
    return Math.max(...this.#laps.map(({ ms }) => ms))
  }

  toString(): string {
    const laps = this.#laps.map(({ what, ms }) => `${what} ${ms}`)
    return `${Math.round(this.#atMs - this.#startedAtMs)} ms (${laps.join(', ')})`
  }
}

/** Why a process may end itself: another one has gone on, or the database was away when it would have joined or taken over. */
const RIGHT_END = new RegExp(
  [
    'another node of the cluster has taken',
    'cannot join its cluster',
    'cannot reach the database of its cluster',
    'The database of the cluster cannot be used',
    'Nobody knows whether the cluster’s log has the last commit',
  ].join('|'),
)

const failed = (error: unknown) => [`The stores cannot be compared: ${inspect(error)}`]

/** The line before what a process said that did not start, as when connections are ended while it joins. */
const notStarted = 'Error: The server ended before it listened:'

/** What a process said that ended itself for another reason. */
function wrongEnds(said: string): string[] {
  const lines = said
    .split('\n')
    .filter((line) => line !== notStarted)
    .filter((line) => /"level":"fatal"|^(Error|The server failed|strandfast): |Assertion failed/.test(line))
  return lines.filter((line) => !RIGHT_END.test(line)).map((line) => `A process ended itself: ${line}`)
}

/** What is looked at between rounds, while nobody writes. */
class Checks {
  readonly #load: ClusterLoad
  readonly #router: Router
  readonly #nodes: ThreeNodes
  readonly #checker = new Checker()
  /** Where in the journal that begins which was not looked at yet. */
  #glancedAt = 0

  constructor(load: ClusterLoad, router: Router, nodes: ThreeNodes) {
    this.#load = load
    this.#router = router
    this.#nodes = nodes
  }

  async run({ whole, strands }: { whole: boolean; strands: boolean }): Promise<string[]> {
    const { known, journal, chains, sessions, watchers } = this.#load
    const { url } = this.#router
    const faults = known.breaches.splice(0)
    const { faults: found } = strands
      ? await this.#checker.check(url, { journal, whole })
      : await this.#checker.glance(url, journal.slice(this.#glancedAt))
    faults.push(...found, ...(await sessions.check(this.#nodes.client, TOKENS)))
    if (strands) {
      journal.splice(0)
      faults.push(...chains.check(this.#checker.strands))
      for (const watcher of watchers) faults.push(...(await watcher.check(this.#checker.strands)))
    }
    this.#glancedAt = journal.length
    return faults
  }
}
