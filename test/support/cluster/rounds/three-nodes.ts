import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../eventually.js'
import { type Ran, run } from '../../server/command.js'
import { Rig } from '../rig.js'
import { ClusterClient } from './cluster-client.js'
import { type NodeMaking, settingsOf, SupervisedNode } from './supervised-node.js'

/** How all three are run. */
type Making = Pick<NodeMaking, 'program' | 'linked'>

const names = ['a', 'b', 'c']

/** How many shards a cluster of the rounds has. */
export const shardCount = 2

/** Three servers of one cluster over a rig, each with ways of its own to each server of the database. */
export class ThreeNodes {
  readonly rig: Rig
  readonly nodes: readonly SupervisedNode[]
  readonly client: ClusterClient
  /** Whether all of them answer. */
  readonly linked: boolean
  readonly #directory: string
  readonly #settings: Record<string, string>

  private constructor(
    rig: Rig,
    directory: string,
    made: Pick<ThreeNodes, 'nodes' | 'linked'> & { settings: Record<string, string> },
  ) {
    this.rig = rig
    this.nodes = made.nodes
    this.linked = made.linked
    this.#directory = directory
    this.#settings = made.settings
    this.client = new ClusterClient(() => this.urls, made.linked)
  }

  /** Makes an empty cluster and starts its nodes. */
  static async start(making: Making): Promise<ThreeNodes> {
    // A node takes no database that would lose what it has acknowledged.
    const rig = await Rig.start(15, { fsync: 'on' })
    const directory = mkdtempSync(join(tmpdir(), 'strandfast-rounds-'))
    const settings = settingsOf(await rig.ways())
    const { status, stderr } = await run(['cluster', 'init', '--shards', `${shardCount}`], settings)
    if (status !== 0) throw new Error(`The cluster was not made: ${stderr}`)
    const nodes: SupervisedNode[] = []
    for (const name of names)
      nodes.push(
        new SupervisedNode({ ...making, name, ways: await rig.ways(), dataDir: join(directory, name) }),
      )
    const all = new ThreeNodes(rig, directory, { nodes, settings, linked: making.linked })
    await all.allWell()
    return all
  }

  /** Where those listen that run. */
  get urls(): string[] {
    return this.nodes.flatMap(({ url }) => url ?? [])
  }

  /** A path where nothing is. */
  place(name: string): string {
    return join(this.#directory, name)
  }

  /** Runs a command with the settings of the cluster. */
  run(args: readonly string[]): Promise<Ran> {
    return run(args, this.#settings)
  }

  /** The node that serves, once one does. */
  async owner(): Promise<SupervisedNode> {
    let owner: SupervisedNode | undefined
    await eventually(async () => {
      for (const node of this.nodes) if (await node.serves()) owner = node
      return owner !== undefined
    })
    if (owner === undefined) throw new Error('Expected a node that serves')
    return owner
  }

  /** Resolves when all run, and one of them serves. */
  async allWell(): Promise<void> {
    for (const node of this.nodes) await node.runs()
    await this.owner()
    if (this.linked) for (const node of this.nodes) await eventually(() => node.answers())
  }

  async remove(): Promise<void> {
    for (const node of this.nodes) node.signal('SIGCONT')
    await Promise.all(this.nodes.map((node) => node.kill()))
    await this.rig.remove()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
