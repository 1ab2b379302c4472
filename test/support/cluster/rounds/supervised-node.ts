import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { authSettings, rootKey } from '../../../../scripts/crash-loop/victim.mjs'
import { testSeed } from '../../postgres/cluster-of-one.js'
import { startServer, type TestServer } from '../../server/server.js'
import { eventually } from '../../eventually.js'
import type { Ways } from '../rig.js'
import { askNode } from './cluster-client.js'
import type { LinkWays } from './link-ways.js'

/** How a node is run. */
export interface NodeMaking {
  name: string
  ways: Ways
  dataDir: string
  /** The program to run, in place of the built one. */
  program?: string | undefined
  /** By what ways nodes reach one another, so that all of them answer; they do not when absent. */
  links?: LinkWays | undefined
}

/** One of the nodes that have links takes requests by several threads, each of which has links of its own. */
const severalFronts = 'b'

/** Its clock can be set. */
const clockOptions = ['--import', new URL('../../faults/shifted-clock.mjs', import.meta.url).href]

/** How long it rests before it starts a process that has ended. */
const REST_MS = 50

/** By these a process ends that has spoilt its memory, and by none that is sent to it. */
const crashes: ReadonlySet<NodeJS.Signals> = new Set([
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGSEGV',
  'SIGTRAP',
])

/** How much of what a process said a description has, characters. */
const WORDS = 4_000

/** The last lines that a server logged, in one: a summary of a run shows no more. */
function lastWords(server: TestServer): string {
  return `behind ${server.stderr().trimEnd().split('\n').slice(-6).join(' / ').slice(-WORDS)}`
}

/** Settings that nodes and commands have in common. */
export function settingsOf(ways: Ways): Record<string, string> {
  const [first = ''] = ways.urls
  const hosts = ways.proxies.map(({ port }) => `127.0.0.1:${port}`).join()
  return {
    SERVICE_CLUSTER_URL: first.replace(/127\.0\.0\.1:\d+/, hosts),
    SERVICE_CLUSTER_LEASE_SECS: '1',
    SERVICE_MASTER_SEED: testSeed,
    SERVICE_ROOT_API_KEY: rootKey,
  }
}

/** A node of a cluster, whose process is started again whenever it has ended. */
export class SupervisedNode {
  readonly name: string
  readonly ways: Ways
  readonly dataDir: string
  /** What it runs from its next start on. */
  program: string | undefined
  /** What its processes said that ended themselves. */
  readonly ends: string[] = []
  readonly #making: NodeMaking
  #server: TestServer | undefined
  #lives = 0
  #isWanted = true
  #keeping: Promise<void>

  constructor(making: NodeMaking) {
    this.#making = making
    this.name = making.name
    this.ways = making.ways
    this.dataDir = making.dataDir
    this.program = making.program
    this.setClock(0)
    this.#keeping = this.#keep()
  }

  /** How far its clock is from that of the machine, milliseconds. */
  setClock(shiftMs: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(shiftMs)
    writeFileSync(this.#clock, bytes)
  }

  get #clock(): string {
    return `${this.dataDir}.clock`
  }

  /** Where it listens; undefined while it does not. */
  get url(): string | undefined {
    return this.#server?.url
  }

  /** Its process: another one each time that it is started. */
  get life(): string {
    return `${this.name} ${this.#lives}`
  }

  /** How many shards it owns. */
  async owned(): Promise<number> {
    const { url } = this
    if (url === undefined) return 0
    const metrics = await askNode(url, { method: 'GET', path: '/metrics' })
    return Number(/^strandfast_cluster_owned_shards (\d+)$/m.exec(metrics?.text ?? '')?.[1] ?? 0)
  }

  /** Whether it takes requests, for itself or for another one. */
  async answers(): Promise<boolean> {
    const { url } = this
    return url !== undefined && (await askNode(url, { method: 'GET', path: '/readyz' }))?.status === 200
  }

  /** Whether its process answers anything, be it that another one serves. */
  async hears(): Promise<boolean> {
    const { url } = this
    return url !== undefined && (await askNode(url, { method: 'GET', path: '/readyz' })) !== undefined
  }

  /** What it says of itself, for a reader of what went wrong. */
  async describe(): Promise<string> {
    const { url, life } = this
    if (url === undefined)
      return `${life} does not listen; its last words: ${this.ends.at(-1)?.slice(-WORDS)}`
    const [ready, server] = await Promise.all(
      ['/readyz', '/v1/server'].map((path) => askNode(url, { method: 'GET', path })),
    )
    const words = this.#server?.stderr().slice(-WORDS)
    return `${life}: ${ready?.status} ${ready?.text}; ${server?.status} ${JSON.stringify(server?.body?.cluster)}; ${words}`
  }

  /** Whether its process has said something. */
  says(text: string): boolean {
    return this.#server?.stderr().includes(text) === true
  }

  /** Stops its process in order. Resolves when the next one listens. */
  async restart(): Promise<void> {
    const { life } = this
    await this.halt('SIGTERM')
    await eventually(() => this.life !== life)
  }

  signal(signal: NodeJS.Signals): void {
    this.#server?.process.kill(signal)
  }

  /** Has its process end, which is started again. @returns its exit code; undefined where none ran */
  async halt(signal: NodeJS.Signals): Promise<number | null | undefined> {
    return this.#server?.halt(signal)
  }

  /** Kills it for good. */
  async kill(): Promise<void> {
    this.#isWanted = false
    this.signal('SIGKILL')
    await this.#keeping
  }

  /** Starts it again after `kill`. */
  start(): void {
    this.#isWanted = true
    this.#keeping = this.#keep()
  }

  async #keep(): Promise<void> {
    const { name, ways, dataDir, links } = this.#making
    // Where nobody listens, there are no links.
    const noLinks = { env: { SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:1' }, nodeOptions: [] }
    const linking = links?.of(name) ?? noLinks
    const isSeveral = links !== undefined && name === severalFronts
    const own = {
      SERVICE_CLUSTER_NODE: name,
      SERVICE_LOG_LEVEL: 'info',
      SERVICE_FRONTS: isSeveral ? '2' : '1',
      TEST_CLOCK_SHIFT: this.#clock,
      ...linking.env,
    }
    const settings = { ...settingsOf(ways), ...authSettings, ...own }
    const nodeOptions = [...clockOptions, ...linking.nodeOptions]
    while (this.#isWanted) {
      try {
        const { program } = this
        const options = { dataDir, nodeOptions, env: settings, ...(program !== undefined && { program }) }
        const server = await startServer(options)
        const { process } = server
        const exited = process.exitCode ?? process.signalCode ?? once(process, 'exit')
        this.#lives += 1
        this.#server = server
        if (!this.#isWanted) process.kill('SIGKILL')
        await exited
        const { exitCode, signalCode } = process
        if (exitCode !== null && exitCode !== 0) this.ends.push(server.stderr())
        if (signalCode !== null && crashes.has(signalCode))
          this.ends.push(`${server.stderr()}\nError: It crashed by ${signalCode}, ${lastWords(server)}`)
      } catch (error) {
        // The database was away when it would have joined.
        this.ends.push(String(error))
      }
      this.#server = undefined
      await pause(REST_MS)
    }
  }
}
