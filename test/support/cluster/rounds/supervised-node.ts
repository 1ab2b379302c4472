import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { authSettings, rootKey } from '../../../../scripts/crash-loop/victim.mjs'
import { testSeed } from '../../postgres/cluster-of-one.js'
import { startServer, type TestServer } from '../../server/server.js'
import { eventually } from '../../eventually.js'
import type { ProxiedServers } from '../rig.js'
import { requestNode } from './cluster-client.js'
import type { LinkProxies } from './link-proxies.js'

/** Options of a supervised node. */
export interface NodeOptions {
  name: string
  ways: ProxiedServers
  dataDir: string
  /** The program, instead of the built one. */
  program?: string | undefined
  /** The proxied links between nodes, with which all of them answer; absent without links. */
  links?: LinkProxies | undefined
}

/** This node accepts requests in several threads, each with its own links, if nodes have links. */
const severalFronts = 'b'

/** Makes the clock of a node adjustable. */
const clockOptions = ['--import', new URL('../../faults/shifted-clock.mjs', import.meta.url).href]

/** Pause before an ended process is restarted, milliseconds. */
const REST_MS = 50

/** Signals that end a process with corrupted memory, and that are never sent to it. */
const crashes: ReadonlySet<NodeJS.Signals> = new Set([
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGSEGV',
  'SIGTRAP',
])

/** Characters of a process's output that a description shows. */
const OUTPUT_CHARS = 4_000

/** The last log lines of a server, joined into one: a summary of a run shows no more. */
function lastLines(server: TestServer): string {
  return `after ${server.stderr().trimEnd().split('\n').slice(-6).join(' / ').slice(-OUTPUT_CHARS)}`
}

/** Settings that nodes and commands share. */
export function settingsOf(ways: ProxiedServers): Record<string, string> {
  const [first = ''] = ways.urls
  const hosts = ways.proxies.map(({ port }) => `127.0.0.1:${port}`).join()
  return {
    SERVICE_CLUSTER_URL: first.replace(/127\.0\.0\.1:\d+/, hosts),
    SERVICE_CLUSTER_LEASE_SECS: '1',
    SERVICE_MASTER_SEED: testSeed,
    SERVICE_ROOT_API_KEY: rootKey,
  }
}

/** A node of a cluster whose process is restarted whenever it has ended. */
export class SupervisedNode {
  readonly name: string
  readonly proxied: ProxiedServers
  readonly dataDir: string
  /** The program from its next start on. */
  program: string | undefined
  /** Settings from its next start on, beside those of the cluster. */
  #mistakes: Record<string, string> = {}
  /** Those of its process, or of its start. */
  #made: Record<string, string> = {}
  /** Output of its processes that ended unexpectedly. */
  readonly ends: string[] = []
  readonly #options: NodeOptions
  #server: TestServer | undefined
  #lives = 0
  #isWanted = true
  #supervising: Promise<void>

  constructor(options: NodeOptions) {
    this.#options = options
    this.name = options.name
    this.proxied = options.ways
    this.dataDir = options.dataDir
    this.program = options.program
    this.setClock(0)
    this.#supervising = this.#supervise()
  }

  /** Sets the clock, relative to the machine's, milliseconds. */
  setClock(shiftMs: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(shiftMs)
    writeFileSync(this.#clock, bytes)
  }

  get #clock(): string {
    return `${this.dataDir}.clock`
  }

  /** The address of the node; undefined while it does not listen. */
  get url(): string | undefined {
    return this.#server?.url
  }

  /** The current process; changes with each start. */
  get life(): string {
    return `${this.name} ${this.#lives}`
  }

  /** The number of owned shards. */
  async owned(): Promise<number> {
    const { url } = this
    if (url === undefined) return 0
    const metrics = await requestNode(url, { method: 'GET', path: '/metrics' })
    return Number(/^strandfast_cluster_owned_shards (\d+)$/m.exec(metrics?.text ?? '')?.[1] ?? 0)
  }

  /** Whether the node answers requests, for itself or for another node. */
  async answers(): Promise<boolean> {
    const { url } = this
    return url !== undefined && (await requestNode(url, { method: 'GET', path: '/readyz' }))?.status === 200
  }

  /** Whether the process answers at all, even as a standby. */
  async responds(): Promise<boolean> {
    const { url } = this
    return url !== undefined && (await requestNode(url, { method: 'GET', path: '/readyz' })) !== undefined
  }

  /** The state of the node, for diagnosis. */
  async describe(): Promise<string> {
    const { url, life } = this
    if (url === undefined)
      return `${life} does not listen; its last output: ${this.ends.at(-1)?.slice(-OUTPUT_CHARS)}`
    const [ready, server] = await Promise.all(
      ['/readyz', '/v1/server'].map((path) => requestNode(url, { method: 'GET', path })),
    )
    const output = this.#server?.stderr().slice(-OUTPUT_CHARS)
    return `${life}: ${ready?.status} ${ready?.text}; ${server?.status} ${JSON.stringify(server?.body?.cluster)}; ${output}`
  }

  /** Whether the current process has logged a text. */
  hasLogged(text: string): boolean {
    return this.#server?.stderr().includes(text) === true
  }

  /** Stops the process in order. Resolves when the next one listens. */
  async restart(): Promise<void> {
    const { life } = this
    await this.halt('SIGTERM')
    await eventually(() => this.life !== life)
  }

  signal(signal: NodeJS.Signals): void {
    this.#server?.process.kill(signal)
  }

  /** Ends the process, which is then restarted. @returns its exit code; undefined if there was none */
  async halt(signal: NodeJS.Signals): Promise<number | null | undefined> {
    return this.#server?.halt(signal)
  }

  /** Changes its settings. Resolves when no process with the former ones is left. */
  async setMistakes(mistakes: Record<string, string>): Promise<void> {
    this.#mistakes = mistakes
    await eventually(async () => {
      if (this.#made !== mistakes) await this.halt('SIGTERM')
      return this.#made === mistakes
    })
  }

  /** Kills the node permanently. */
  async kill(): Promise<void> {
    this.#isWanted = false
    this.signal('SIGKILL')
    await this.#supervising
  }

  /** Starts the node again after `kill`. */
  start(): void {
    this.#isWanted = true
    this.#supervising = this.#supervise()
  }

  async #supervise(): Promise<void> {
    const { name, ways, dataDir, links } = this.#options
    // An address without a listener disables links.
    const noLinks = { env: { SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:1' }, nodeOptions: [] }
    const linkOptions = links?.of(name) ?? noLinks
    const isSeveral = links !== undefined && name === severalFronts
    const own = {
      SERVICE_CLUSTER_NODE: name,
      SERVICE_LOG_LEVEL: 'info',
      SERVICE_FRONTS: isSeveral ? '2' : '1',
      TEST_CLOCK_SHIFT: this.#clock,
      ...linkOptions.env,
    }
    const nodeOptions = [...clockOptions, ...linkOptions.nodeOptions]
    while (this.#isWanted) {
      try {
        const { program } = this
        this.#made = this.#mistakes
        const settings = { ...settingsOf(ways), ...authSettings, ...own, ...this.#mistakes }
        const start = { dataDir, nodeOptions, env: settings, ...(program !== undefined && { program }) }
        const server = await startServer(start)
        const { process } = server
        const exited = process.exitCode ?? process.signalCode ?? once(process, 'exit')
        this.#lives += 1
        this.#server = server
        if (!this.#isWanted) process.kill('SIGKILL')
        await exited
        const { exitCode, signalCode } = process
        if (exitCode !== null && exitCode !== 0) this.ends.push(server.stderr())
        if (signalCode !== null && crashes.has(signalCode))
          this.ends.push(
            `${server.stderr()}\nError: The process crashed by ${signalCode}, ${lastLines(server)}`,
          )
      } catch (error) {
        // The database was down when the node joined.
        this.ends.push(String(error))
      }
      this.#server = undefined
      await pause(REST_MS)
    }
  }
}
