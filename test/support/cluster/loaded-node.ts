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
/** Writers of each agent: more than one, so that groups have several records. */
const WRITERS = 2
/** How long a writer waits that was refused, so that the machine is busy with something else, milliseconds. */
const REFUSED_MS = 50

/**
 * Settings of a node, and of commands beside it, over the servers of a database.
 * @param role which it logs in as; that of the database's owner when absent
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

/** A node, and writers that note what it answered. */
export class LoadedNode {
  readonly server: TestServer
  readonly #env: Record<string, string>
  readonly #directory: string
  /** Hashes of records that it acknowledged, and their agents. */
  readonly acknowledged = new Map<string, string>()
  /** What it answered otherwise. */
  readonly refused: TestAnswer[] = []
  #isWriting = true
  readonly #writers: Promise<void>[]

  private constructor(server: TestServer, env: Record<string, string>, directory: string) {
    this.server = server
    this.#env = env
    this.#directory = directory
    this.#writers = agents.flatMap((agent) => Array.from({ length: WRITERS }, () => this.#write(agent)))
  }

  /** Starts it on an empty directory. */
  static async start(env: Record<string, string>): Promise<LoadedNode> {
    const directory = mkdtempSync(join(tmpdir(), 'strandfast-loaded-'))
    const server = await startServer({ dataDir: join(directory, 'data'), env })
    return new LoadedNode(server, env, directory)
  }

  /** What it says of itself: 200 where it serves. */
  ready(): Promise<TestAnswer> {
    return call(this.server, 'GET /readyz')
  }

  /** Resolves when it serves, and has acknowledged some more. */
  async goesOn(): Promise<void> {
    const { size } = this.acknowledged
    await eventually(() => this.acknowledged.size > size + 30)
    await eventually(async () => (await this.ready()).status === 200)
  }

  /** Ends the writing. @returns what of all that was acknowledged the exports lack, which `verify` found whole */
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

  /** Stops it, and removes what it has. */
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
    await this.#run(['verify', file, '--key', key])
    const headers = lines.filter((line) => line.startsWith('{"h"')).map((line) => JSON.parse(line).h)
    return new Set(headers.map((header) => createHash('sha256').update(`\0${header}`).digest('hex')))
  }

  async #run(args: readonly string[]): Promise<Ran> {
    const ran = await run(args, this.#env)
    if (ran.status !== 0) throw new Error(`${args.join(' ')}: ${ran.stderr}`)
    return ran
  }
}
