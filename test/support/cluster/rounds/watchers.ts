import { get, type IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { rootKey } from '../../../../scripts/crash-loop/victim.mjs'
import type { Strand } from '../../../../scripts/crash-loop/strands.mjs'
import { eventually } from '../../eventually.js'
import { chainAgents } from './chains.js'

/** Time without data under load after which the client looks for another node, milliseconds. */
const IDLE_MS = 1_200
const REST_MS = 20

/** A client of a stream, which resumes after the last event that it has seen, at any serving node. */
class Watcher {
  readonly #path: string
  readonly #agents: readonly string[]
  readonly #urls: () => readonly string[]
  /** By agent: the next expected seq, and the faults since the last check. */
  readonly #seen = new Map<string, { next: number; faults: string[] }>()
  #lastId = ''
  #status: number | undefined
  #isOver = false
  #running: Promise<void>
  #open: IncomingMessage | undefined

  /** @param path of a stream of these agents */
  constructor(path: string, agents: readonly string[], urls: () => readonly string[]) {
    this.#path = path
    this.#agents = agents
    this.#urls = urls
    this.#running = this.#run()
  }

  /**
   * Resolves when the client has seen each of its strands to the end.
   * @returns events that were missing, repeated or out of order
   */
  async check(strands: ReadonlyMap<string, Strand>): Promise<string[]> {
    const lengths = this.#agents.map((agent) => [agent, strands.get(agent)?.records.length ?? 0] as const)
    await eventually(() =>
      lengths.every(([agent, length]) => {
        const { next, faults } = this.#of(agent)
        return faults.length > 0 || next >= length
      }),
    )
    return this.#agents.flatMap((agent) => this.#of(agent).faults.splice(0))
  }

  /** The state of the client, for diagnosis. */
  describe(): string {
    const seen = [...this.#seen].map(([agent, { next }]) => `${agent} before ${next}`)
    return `Stream ${this.#path} after ${this.#lastId}, last answered ${this.#status}: ${seen.join(', ')}`
  }

  async end(): Promise<void> {
    this.#isOver = true
    this.#open?.destroy()
    await this.#running
  }

  #of(agent: string): { next: number; faults: string[] } {
    const seen = this.#seen.get(agent) ?? { next: 0, faults: [] }
    this.#seen.set(agent, seen)
    return seen
  }

  async #run(): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      const urls = this.#urls()
      const url = urls[turn % Math.max(1, urls.length)]
      if (url !== undefined) await this.#follow(url)
      await pause(REST_MS)
    }
  }

  /** Reads the stream of one node until it ends, or no data has arrived for too long. */
  #follow(url: string): Promise<void> {
    return new Promise((resolve) => {
      const resume = this.#lastId === '' ? {} : { 'last-event-id': this.#lastId }
      const request = get(url + this.#path, {
        agent: false,
        headers: { authorization: `Bearer ${rootKey}`, ...resume },
      })
      request.setTimeout(IDLE_MS, () => request.destroy())
      request.on('error', () => resolve())
      request.on('response', (response) => {
        response.on('error', () => resolve())
        response.on('close', () => resolve())
        this.#status = response.statusCode
        if (response.statusCode !== 200) return void response.destroy()
        this.#open = response
        let rest = ''
        response.setEncoding('utf8')
        response.on('data', (piece: string) => {
          const blocks = (rest + piece).split('\n\n')
          rest = blocks.pop() ?? ''
          for (const block of blocks) this.#take(block)
        })
      })
    })
  }

  #take(block: string): void {
    const [, id] = /^id: (.*)$/m.exec(block) ?? []
    if (id !== undefined) this.#lastId = id
    const [, data] = /^event: record\ndata: (.*)$/m.exec(block) ?? []
    if (data === undefined) return
    const { agent, seq }: { agent: string; seq: number } = JSON.parse(data)
    const seen = this.#of(agent)
    // A stream begins with the first record after the one that created the agent.
    if (seq !== seen.next && !(seen.next === 0 && seq === 1))
      seen.faults.push(`A stream delivered record ${seq} of ${agent} where ${seen.next} was expected`)
    seen.next = seq + 1
  }
}

/** Agents whose records are never deleted or erased, so that a stream delivers all of them. */
const collections = ['crash-0', 'crash-1', 'crash-2', 'crash-ingest-0', 'crash-ingest-1']

/** Streams of one agent, and of several. */
export function watchAll(urls: () => readonly string[]): Watcher[] {
  const agents = [...chainAgents, ...collections]
  return [
    ...chainAgents.map((agent) => new Watcher(`/v1/agents/${agent}/stream?since=0`, [agent], urls)),
    new Watcher(`/v1/stream?agents=${agents.join()}&since=0`, agents, urls),
    new Watcher('/v1/stream?since=0', agents, urls),
  ]
}
