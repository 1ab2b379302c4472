import { setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Checker } from '../../../../scripts/crash-loop/check.mjs'
import { seededRandom } from '../../../../scripts/crash-loop/seeded-random.mjs'
import type { Fault } from './fault.js'
import { ClusterLoad } from './load.js'
import { type Router, startRouter } from './router.js'
import { differences } from './stores.js'
import { ThreeNodes } from './three-nodes.js'

/**
 * Rounds after which all strands are verified; after the others only the answers and the ends of strands are
 * checked.
 */
const VERIFIED_EVERY = 4
/** Calls that are answered before and after a fault; more calls run during it. */
const CALLS = 60
/** Default time limit of a round on a busy machine, milliseconds. */
const ROUND_MS = 300_000
/** Duration of a part of a round after which the state of all processes is reported, milliseconds. */
const SLOW_MS = 8_000
/** Tokens of earlier rounds that are tried again. */
const TOKENS = 12

/** Options of the rounds. */
export interface RoundsOptions {
  seed: number
  /** The faults of the rounds, in order. */
  faults: readonly Fault[]
  /** The program of the nodes, instead of the built one. */
  program?: string
  /** Whether nodes have links, so that all of them answer. */
  linked: boolean
  /** Time limit of a round, milliseconds. */
  roundMs?: number
  /** Called with a line for each round. */
  report?(line: string): void
}

/** The result of the rounds. */
export interface RoundsFound {
  /** Broken guarantees, with the round that revealed them: empty if all is well. */
  breaches: string[]
  rounds: number
  /** Output of node processes that ended unexpectedly. */
  ends: string[]
}

/**
 * Runs a cluster under load, with a fault in each round; then checks all answers. Stops after the first round
 * with a breach. At the end all nodes are killed, and their stores are compared.
 */
export async function clusterRounds({
  seed,
  faults,
  program,
  linked,
  roundMs = ROUND_MS,
  report = () => {},
}: RoundsOptions): Promise<RoundsFound> {
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
      const isLast = rounds === faults.length
      const strands = isLast || rounds % VERIFIED_EVERY === 0
      const laps = new Laps()
      const playing = round(fault, {
        nodes,
        load,
        random,
        laps,
        check: () => checks.run({ isLast, strands }),
      })
      const found = await Promise.race([playing, pause(roundMs, undefined)])
      const about = `Round ${rounds}, ${fault.name}, ${linked ? 'with' : 'without'} links`
      if (found === undefined) {
        const state = await describe(nodes, load)
        return {
          breaches: [
            `${about}: it did not end within ${roundMs} ms, and its last lap ended after ${laps}`,
            ...state,
          ],
          rounds,
          ends: [],
        }
      }
      breaches.push(...found.map((text) => `${about}: ${text}`))
      const outage = `no node answered for ${Math.round(load.known.takeOutageMs())} ms`
      report(`round ${rounds}/${faults.length}: ${fault.name}; ${laps}; ${outage}`)
      if (laps.longestMs > SLOW_MS) report(`It took long: ${(await describe(nodes, load)).join('\n')}`)
      if (breaches.length > 0) break
    }
    await load.end()
    await Promise.all(nodes.nodes.map((node) => node.kill()))
    breaches.push(...load.known.breaches, ...(await differences(nodes).catch(failed)))
    const ends = nodes.nodes.flatMap((node) => node.ends)
    return { breaches: [...breaches, ...ends.flatMap(unexpectedEnds)], rounds, ends }
  } finally {
    nodes.client.end()
    await load.end()
    router.stop()
    await nodes.remove()
  }
}

/** The parts of a round. */
interface RoundParts {
  nodes: ThreeNodes
  load: ClusterLoad
  random: () => number
  laps: Laps
  check(): Promise<string[]>
}

/** Runs load with a fault in the middle, and checks it when all nodes run and all shards are served. */
async function round(fault: Fault, { nodes, load, random, laps, check }: RoundParts): Promise<string[]> {
  load.begin()
  await load.progress(CALLS)
  laps.end('load')
  await nodes.shared()
  laps.end('shares')
  const seen = (await fault.act(nodes, random)) ?? []
  laps.end('fault')
  await nodes.allWell()
  laps.end('recovery')
  await load.progress(CALLS)
  await load.stop()
  laps.end('load')
  const found = await check()
  laps.end('checks')
  return [...seen, ...found]
}

/** The state of all processes, for diagnosis. */
async function describe(nodes: ThreeNodes, load: ClusterLoad): Promise<string[]> {
  const ofNodes = await Promise.all(nodes.nodes.map((node) => node.describe()))
  const streams = load.watchers.map((watcher) => watcher.describe())
  return [...ofNodes, await nodes.rig.describe(), nodes.client.describe(), ...streams]
}

/** Durations of the parts of a round. */
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

/**
 * Reasons for which a process may end: another node has taken over, or the database was down when it joined
 * or took over.
 */
const EXPECTED_END = new RegExp(
  [
    'another node has expelled this one',
    'another node of the cluster has taken',
    'cannot join its cluster',
    'cannot reach the database of its cluster',
    'the clock of this machine is',
    'The database of SERVICE_CLUSTER_URL',
    'The database of the cluster cannot be used',
    'It is unknown whether the cluster’s log has the last commit',
  ].join('|'),
)

const failed = (error: unknown) => [`Could not compare the stores: ${inspect(error)}`]

/**
 * The line before the output of a process that did not start, for example because its connections were ended
 * while it joined.
 */
const notStarted = 'Error: The server ended before it listened:'

/** Finds other reasons in the output of a process that has ended. */
function unexpectedEnds(output: string): string[] {
  const lines = output
    .split('\n')
    .filter((line) => line !== notStarted)
    .filter((line) => /"level":"fatal"|^(Error|The server failed|strandfast): |Assertion failed/.test(line))
  return lines.filter((line) => !EXPECTED_END.test(line)).map((line) => `A process ended itself: ${line}`)
}

/** The checks between rounds, while nothing is written. */
class Checks {
  readonly #load: ClusterLoad
  readonly #router: Router
  readonly #nodes: ThreeNodes
  readonly #checker = new Checker()
  /** Index in the journal of the first unchecked entry. */
  #checkedUpTo = 0

  constructor(load: ClusterLoad, router: Router, nodes: ThreeNodes) {
    this.#load = load
    this.#router = router
    this.#nodes = nodes
  }

  async run({ isLast, strands }: { isLast: boolean; strands: boolean }): Promise<string[]> {
    const { known, journal, chains, sessions, watchers } = this.#load
    const { url } = this.#router
    const faults = known.breaches.splice(0)
    const { faults: found } = strands
      ? await this.#checker.check(url, { journal, whole: isLast })
      : await this.#checker.glance(url, journal.slice(this.#checkedUpTo))
    faults.push(...found, ...(await sessions.check(this.#nodes.client, TOKENS)))
    if (strands) {
      journal.splice(0)
      faults.push(...chains.check(this.#checker.strands))
      for (const watcher of watchers) faults.push(...(await watcher.check(this.#checker.strands)))
    }
    this.#checkedUpTo = journal.length
    return faults
  }
}
