import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../eventually.js'
import { type Ran, run } from '../../server/command.js'
import { Rig } from '../rig.js'
import { ClusterClient } from './cluster-client.js'
import { LinkWays } from './link-ways.js'
import { type PlantedBuild, plantedBuild } from './planted-build.js'
import { settingsOf, SupervisedNode } from './supervised-node.js'

/** How all three are run. */
interface Making {
  /** The program to run, in place of the built one. */
  program?: string | undefined
  /** Whether nodes reach one another, so that all of them answer. */
  linked: boolean
}

const names = ['a', 'b', 'c']

/** How many shards a cluster of the rounds has. */
export const shardCount = 4

/** What is not the program's, nor that of any release. */
const otherVersion = '0.0.0-other'

/** What three nodes are made of. */
interface Made {
  nodes: readonly SupervisedNode[]
  settings: Record<string, string>
  program: string | undefined
  links: LinkWays | undefined
}

/** Three servers of one cluster over a rig, each with ways of its own to each server of the database. */
export class ThreeNodes {
  readonly rig: Rig
  readonly nodes: readonly SupervisedNode[]
  readonly client: ClusterClient
  readonly #links: LinkWays | undefined
  readonly #directory: string
  readonly #settings: Record<string, string>
  /** The program that all began with, and the same with another version. */
  readonly #program: string | undefined
  #other: PlantedBuild | undefined
  /** How often it was asked for an owner. */
  #asked = 0

  private constructor(rig: Rig, directory: string, made: Made) {
    this.rig = rig
    this.nodes = made.nodes
    this.#links = made.links
    this.#program = made.program
    this.#directory = directory
    this.#settings = made.settings
    this.client = new ClusterClient(() => this.urls, this.linked)
  }

  /** Makes an empty cluster and starts its nodes. */
  static async start({ program, linked }: Making): Promise<ThreeNodes> {
    // A node takes no database that would lose what it has acknowledged.
    const rig = await Rig.start(15, { fsync: 'on' })
    const directory = mkdtempSync(join(tmpdir(), 'strandfast-rounds-'))
    const settings = settingsOf(await rig.ways())
    const { status, stderr } = await run(['cluster', 'init', '--shards', `${shardCount}`], settings)
    if (status !== 0) throw new Error(`The cluster was not made: ${stderr}`)
    const links = linked ? await LinkWays.between(names, directory) : undefined
    const nodes: SupervisedNode[] = []
    for (const name of names)
      nodes.push(
        new SupervisedNode({ program, links, name, ways: await rig.ways(), dataDir: join(directory, name) }),
      )
    const all = new ThreeNodes(rig, directory, { nodes, settings, program, links })
    await all.allWell()
    return all
  }

  /** Where those listen that run. */
  get urls(): string[] {
    return this.nodes.flatMap(({ url }) => url ?? [])
  }

  /** Whether all of them answer. */
  get linked(): boolean {
    return this.#links !== undefined
  }

  /** The ways between nodes. */
  get links(): LinkWays {
    if (this.#links === undefined) throw new Error('Expected the nodes to have links')
    return this.#links
  }

  /** A program of another version than one that a node runs. */
  otherThan(program: string | undefined): string | undefined {
    if (program !== this.#program) return this.#program
    this.#other ??= plantedBuild({ version: otherVersion })
    return this.#other.program
  }

  /** A path where nothing is. */
  place(name: string): string {
    return join(this.#directory, name)
  }

  /** Runs a command with the settings of the cluster. */
  run(args: readonly string[]): Promise<Ran> {
    return run(args, this.#settings)
  }

  /** A node that owns shards and answers, once there is one; of several the one that owns most, or another each time. */
  async owner(): Promise<SupervisedNode> {
    let owner: SupervisedNode | undefined
    this.#asked += 1
    await eventually(async () => {
      const owners: { node: SupervisedNode; owned: number }[] = []
      for (const node of this.nodes) {
        const owned = await node.owned()
        if (owned > 0 && (await node.answers())) owners.push({ node, owned })
      }
      owners.sort((one, other) => other.owned - one.owned)
      owner = (this.linked ? owners[this.#asked % owners.length] : owners[0])?.node
      return owner !== undefined
    })
    if (owner === undefined) throw new Error('Expected a node that owns shards')
    return owner
  }

  /** Whether nodes own all shards among them, and none that another one of them owns. */
  async ownAll(nodes: readonly SupervisedNode[]): Promise<boolean> {
    return (await ownedBy(nodes)) === shardCount
  }

  /** Whether nodes have taken the shards of the others; one that is cut off may not know yet that it has lost its own. */
  async haveTaken(nodes: readonly SupervisedNode[]): Promise<boolean> {
    return (await ownedBy(nodes)) >= shardCount
  }

  /** Resolves when all run, none hangs, and all shards are served. */
  async allWell(): Promise<void> {
    for (const node of this.nodes) await eventually(() => node.hears())
    await eventually(() => this.ownAll(this.nodes))
    await this.owner()
    if (this.linked) for (const node of this.nodes) await eventually(() => node.answers())
  }

  /** Resolves when each node owns its share: for some leases all has been well. */
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
