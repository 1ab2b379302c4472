import { between, seededRandom } from '../../../../scripts/crash-loop/seeded-random.mjs'
import { freeAgent } from '../../../../scripts/crash-loop/operations.mjs'
import { eventually } from '../../eventually.js'
import { Chains, chainAgents } from './chains.js'
import { posting } from './cluster-client.js'
import { erasedAgent, erasures } from './erasures.js'
import { Known } from './known.js'
import { probes } from './probes.js'
import { Sessions } from './sessions.js'
import type { ThreeNodes } from './three-nodes.js'
import { watchAll } from './watchers.js'
import { type Entry, type LoadParts, writes } from './writes.js'

/** Concurrent writers, besides the clients that write to heads, erase and sign in. */
const WRITERS = 4

const agents = [...chainAgents, erasedAgent, freeAgent]

/** The load of a cluster, in rounds, and what its clients have learned. */
export class ClusterLoad {
  readonly known = new Known()
  readonly chains = new Chains()
  readonly sessions = new Sessions()
  readonly watchers: ReturnType<typeof watchAll>
  /** The requests since the last check. */
  readonly journal: Entry[] = []
  readonly #nodes: ThreeNodes
  readonly #random: () => number
  #rounds = 0
  #isStopped = true
  #running: Promise<unknown> = Promise.resolve()
  #isOver = false
  readonly #probing: Promise<unknown>

  private constructor(nodes: ThreeNodes, random: () => number) {
    this.#nodes = nodes
    this.#random = random
    this.watchers = watchAll(() => nodes.urls)
    // Also while nothing is written: then a node does not find out by a write that it was replaced.
    const parts = this.#parts('probes', () => this.#isOver)
    this.#probing = Promise.all(nodes.nodes.map((node) => probes(parts, node)))
  }

  /** Creates the agents and the subscribers. */
  static async on(nodes: ThreeNodes, random: () => number): Promise<ClusterLoad> {
    for (const name of agents) await nodes.client.insist(posting('/v1/agents', { name, zone: 'free' }))
    return new ClusterLoad(nodes, random)
  }

  begin(): void {
    this.#isStopped = false
    const parts = this.#parts(`r${(this.#rounds += 1)}`, () => this.#isStopped)
    this.#running = Promise.all([
      writes(parts, WRITERS),
      this.chains.run(parts),
      erasures(parts),
      this.sessions.run(parts),
    ])
  }

  #parts(prefix: string, stopped: () => boolean): LoadParts {
    const random = seededRandom(between(this.#random, 0, 2 ** 31))
    const { known, journal } = this
    const { client, linked } = this.#nodes
    return { client, known, journal, random, prefix, stopped, linked }
  }

  /** Resolves when `calls` more requests were answered. */
  async progress(calls: number): Promise<void> {
    const until = this.known.answered + calls
    await eventually(() => this.known.answered >= until)
  }

  /** Resolves when each pending request was answered by a serving node. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
  }

  async end(): Promise<void> {
    this.#isOver = true
    this.#isStopped = true
    // The cluster may not serve any more.
    this.#running.catch(() => undefined)
    await Promise.all([this.#probing, ...this.watchers.map((watcher) => watcher.end())])
  }
}
