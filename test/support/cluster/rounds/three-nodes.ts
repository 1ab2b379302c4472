import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../eventually.js'
import { type Ran, run } from '../../server/command.js'
import { Rig } from '../rig.js'
import { ClusterClient } from './cluster-client.js'
import { LinkProxies } from './link-proxies.js'
import { type PlantedBuild, plantedBuild } from './planted-build.js'
import { settingsOf, SupervisedNode } from './supervised-node.js'

/** Options of the three nodes. */
interface ClusterOptions {
  /** The program, instead of the built one. */
  program?: string | undefined
  /** Whether nodes have links, so that all of them answer. */
  linked: boolean
}

const names = ['a', 'b', 'c']

/** Shards of the cluster. */
export const shardCount = 4

/** A version that no release has. */
const otherVersion = '0.0.0-other'

/** The parts of the cluster. */
interface ClusterParts {
  nodes: readonly SupervisedNode[]
  settings: Record<string, string>
  program: string | undefined
  links: LinkProxies | undefined
}

/** Three nodes of one cluster with a rig, each with separate proxied connections to each database server. */
export class ThreeNodes {
  readonly rig: Rig
  readonly nodes: readonly SupervisedNode[]
  readonly client: ClusterClient
  readonly #links: LinkProxies | undefined
  readonly #directory: string
  readonly #settings: Record<string, string>
  /** The initial program of all nodes, and the same with another version. */
  readonly #program: string | undefined
  #other: PlantedBuild | undefined
  /** Number of calls of `owner`. */
  #ownerRequests = 0

  private constructor(rig: Rig, directory: string, parts: ClusterParts) {
    this.rig = rig
    this.nodes = parts.nodes
    this.#links = parts.links
    this.#program = parts.program
    this.#directory = directory
    this.#settings = parts.settings
    this.client = new ClusterClient(() => this.urls, this.linked)
  }

  /** Creates an empty cluster, and starts its nodes. */
  static async start({ program, linked }: ClusterOptions): Promise<ThreeNodes> {
    // A node refuses a database that could lose acknowledged writes.
    const rig = await Rig.start(15, { fsync: 'on' })
    const directory = mkdtempSync(join(tmpdir(), 'strandfast-rounds-'))
    const settings = settingsOf(await rig.proxied())
    const { status, stderr } = await run(['cluster', 'init', '--shards', `${shardCount}`], settings)
    if (status !== 0) throw new Error(`Could not create the cluster: ${stderr}`)
    const links = linked ? await LinkProxies.between(names, directory) : undefined
    const nodes: SupervisedNode[] = []
    for (const name of names)
      nodes.push(
        new SupervisedNode({
          program,
          links,
          name,
          ways: await rig.proxied(),
          dataDir: join(directory, name),
        }),
      )
    const all = new ThreeNodes(rig, directory, { nodes, settings, program, links })
    await all.allWell()
    return all
  }

  /** The addresses of the running nodes. */
  get urls(): string[] {
    return this.nodes.flatMap(({ url }) => url ?? [])
  }

  /** Whether nodes have links. */
  get linked(): boolean {
    return this.#links !== undefined
  }

  /** The proxied links between nodes. */
  get links(): LinkProxies {
    if (this.#links === undefined) throw new Error('The nodes have no links')
    return this.#links
  }

  /** A program of another version than the given one. */
  otherThan(program: string | undefined): string | undefined {
    if (program !== this.#program) return this.#program
    this.#other ??= plantedBuild({ version: otherVersion })
    return this.#other.program
  }

  /** An unused path. */
  place(name: string): string {
    return join(this.#directory, name)
  }

  /** Runs a command with the settings of the cluster. */
  run(args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
    return run(args, { ...this.#settings, ...env })
  }

  /**
   * Waits for a node that owns shards and answers; among several the one that owns most, or with links
   * another one each time.
   */
  async owner(): Promise<SupervisedNode> {
    let owner: SupervisedNode | undefined
    this.#ownerRequests += 1
    await eventually(async () => {
      const owners: { node: SupervisedNode; owned: number }[] = []
      for (const node of this.nodes) {
        const owned = await node.owned()
        if (owned > 0 && (await node.answers())) owners.push({ node, owned })
      }
      owners.sort((one, other) => other.owned - one.owned)
      owner = (this.linked ? owners[this.#ownerRequests % owners.length] : owners[0])?.node
      return owner !== undefined
    })
    if (owner === undefined) throw new Error('No node owns shards')
    return owner
  }

  /** Whether nodes own each shard exactly once. */
  async ownAll(nodes: readonly SupervisedNode[]): Promise<boolean> {
    return (await ownedBy(nodes)) === shardCount
  }

  /**
   * Whether nodes have taken over the shards of the others; a node that is cut off may not know yet that it
   * has lost its own.
   */
  async haveTakenOver(nodes: readonly SupervisedNode[]): Promise<boolean> {
    return (await ownedBy(nodes)) >= shardCount
  }

  /** Resolves when all nodes run and answer, and all shards are served. */
  async allWell(): Promise<void> {
    for (const node of this.nodes) await eventually(() => node.responds())
    await eventually(() => this.ownAll(this.nodes))
    await this.owner()
    if (this.linked) for (const node of this.nodes) await eventually(() => node.answers())
  }

  /** Resolves when each node owns its share, which takes several healthy leases. */
  async shared(): Promise<void> {
    if (!this.linked) return
    await eventually(async () => {
      const owned = await Promise.all(this.nodes.map((node) => node.owned()))
      return owned.every((count) => count > 0 && count <= Math.ceil(shardCount / names.length))
    })
  }

  async remove(): Promise<void> {
    for (const node of this.nodes) node.signal('SIGCONT')
    await Promise.all(this.nodes.map((node) => node.kill()))
    await this.#links?.stop()
    await this.rig.remove()
    this.#other?.remove()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

async function ownedBy(nodes: readonly SupervisedNode[]): Promise<number> {
  const owned = await Promise.all(nodes.map((node) => node.owned()))
  return owned.reduce((sum, count) => sum + count, 0)
}
