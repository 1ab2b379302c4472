import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from '../eventually.js'
import { testSeed } from '../postgres/cluster-of-one.js'
import { run, type Ran } from '../server/command.js'
import { call, startServer, testRootKey, type TestAnswer, type TestServer } from '../server/server.js'

const agents = ['one', 'two', 'three'] as const
/** Writers per agent: more than one, so that groups have several records. */
const WRITERS = 2
/** Pause of a writer after a refusal, milliseconds. */
const REFUSED_MS = 50

/**
 * Settings for a node, and for commands beside it, with the servers of a database.
 * @param role the database role; the owner of the database when absent
 */
export function nodeSettings(urls: readonly string[], role = 'strandfast'): Record<string, string> {
  const hosts = urls.map((url) => new URL(url).host).join(',')
  return {
    SERVICE_CLUSTER_URL: `postgres://${role}@${hosts}/postgres`,
    SERVICE_CLUSTER_LEASE_SECS: '2',
    SERVICE_MASTER_SEED: testSeed,
    SERVICE_ROOT_API_KEY: testRootKey,
  }
}

/** A node, and writers that record its answers. */
export class LoadedNode {
  readonly server: TestServer
  readonly #env: Record<string, string>
  readonly #directory: string
  /** Hashes of acknowledged records, and their agents. */
  readonly acknowledged = new Map<string, string>()
  /** All other answers. */
  readonly refused: TestAnswer[] = []
  #isWriting = true
  readonly #writers: Promise<void>[]

  private constructor(server: TestServer, env: Record<string, string>, directory: string) {
    this.server = server
    this.#env = env
    this.#directory = directory
    this.#writers = agents.flatMap((agent) => Array.from({ length: WRITERS }, () => this.#write(agent)))
  }

  /** Starts a node with an empty directory. */
  static async start(env: Record<string, string>): Promise<LoadedNode> {
    const directory = mkdtempSync(join(tmpdir(), 'strandfast-loaded-'))
    const server = await startServer({ dataDir: join(directory, 'data'), env })
    return new LoadedNode(server, env, directory)
  }

  /** Requests /readyz: 200 if the node serves. */
  ready(): Promise<TestAnswer> {
    return call(this.server, 'GET /readyz')
  }

  /** Resolves when the node serves, and has acknowledged more writes. */
  async recovers(): Promise<void> {
    const { size } = this.acknowledged
    await eventually(() => this.acknowledged.size > size + 30)
    await eventually(async () => (await this.ready()).status === 200)
  }

  /**
   * Ends the writers.
   * @returns acknowledged records that are missing from the exports, which `verify` has accepted
   */
  async lost(): Promise<string[]> {
    this.#isWriting = false
    await Promise.all(this.#writers)
    const found: string[] = []
    for (const agent of agents) {
      const there = await this.#recordsOf(agent)
      const own = [...this.acknowledged].filter(([, of]) => of === agent).map(([hash]) => hash)
      found.push(...own.filter((hash) => !there.has(hash)))
    }
    return found
  }

  /** Stops the node, and removes its directory. */
  async stop(): Promise<void> {
    const { process } = this.server
    this.#isWriting = false
    if (process.exitCode === null && process.signalCode === null) await this.server.halt('SIGKILL')
    await Promise.all(this.#writers)
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #write(agent: string): Promise<void> {
    const { process } = this.server
    for (let n = 0; this.#isWriting && process.exitCode === null && process.signalCode === null; n++) {
      const route = `POST /v1/collections/${agent}/records`
      const answer = await call(this.server, route, { body: { data: { text: `${agent} ${n}` } } }).catch(
        () => undefined,
      )
      if (answer === undefined) continue
      if (answer.status === 201) this.acknowledged.set(answer.body.content_hash, agent)
      else {
        this.refused.push(answer)
        await pause(REFUSED_MS)
      }
    }
  }

  /** Hashes of the records of an agent (docs/FORMAT.md, Header). */
  async #recordsOf(agent: string): Promise<Set<string>> {
    const file = join(this.#directory, `${agent}.ndjson`)
    await this.#run(['export', '--agent', agent, '--url', this.server.url, '--out', file])
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    const { public_key: key } = JSON.parse(lines[0] ?? '')
    await this.#run(['verify', file, '--public-key', key])
    const headers = lines.filter((line) => line.startsWith('{"h"')).map((line) => JSON.parse(line).h)
    return new Set(headers.map((header) => createHash('sha256').update(`\0${header}`).digest('hex')))
  }

  async #run(args: readonly string[]): Promise<Ran> {
    const ran = await run(args, this.#env)
    if (ran.status !== 0) throw new Error(`${args.join(' ')}: ${ran.stderr}`)
    return ran
  }
}
