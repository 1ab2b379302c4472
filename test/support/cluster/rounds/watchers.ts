import { get, type IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { rootKey } from '../../../../scripts/crash-loop/victim.mjs'
import type { Strand } from '../../../../scripts/crash-loop/strands.mjs'
import { eventually } from '../../eventually.js'
import { chainAgents } from './chains.js'

/** How long a stream may be silent under load before its client looks for another node, milliseconds. */
const SILENCE_MS = 1_200
const REST_MS = 20

/** A client of a stream, which goes on behind the last event that it has seen at whichever node serves. */
class Watcher {
  readonly #path: string
  readonly #agents: readonly string[]
  readonly #urls: () => readonly string[]
  /** Seqs of each agent, in the order in which they came, since the last check; before them, how many there were. */
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

  /** Resolves when it has seen each of its strands to the end. @returns what it saw otherwise than once and in order */
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

  /** What it has seen, for a reader of what went wrong. */
  describe(): string {
    const seen = [...this.#seen].map(([agent, { next }]) => `${agent} before ${next}`)
    return `Stream ${this.#path} behind ${this.#lastId}, last answered ${this.#status}: ${seen.join(', ')}`
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

  /** Reads the stream of one node until that ends it, or says nothing for long. */
  #follow(url: string): Promise<void> {
    return new Promise((resolve) => {
      const goOn = this.#lastId === '' ? {} : { 'last-event-id': this.#lastId }
      const asked = get(url + this.#path, {
        agent: false,
        headers: { authorization: `Bearer ${rootKey}`, ...goOn },
      })
      asked.setTimeout(SILENCE_MS, () => asked.destroy())
      asked.on('error', () => resolve())
      asked.on('response', (response) => {
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
    // Streams begin with the first record behind that of the agent itself.
    if (seq !== seen.next && !(seen.next === 0 && seq === 1))
      seen.faults.push(`A stream told record ${seq} of ${agent} where ${seen.next} was next`)
    seen.next = seq + 1
  }
}

/** Agents whose records nobody deletes or erases: a stream tells all of them. */
const collections = ['crash-0', 'crash-1', 'crash-2', 'crash-ingest-0', 'crash-ingest-1']

/** Streams over one agent, and over several. */
export function watchAll(urls: () => readonly string[]): Watcher[] {
  const some = [...chainAgents, ...collections]
  return [
    ...chainAgents.map((agent) => new Watcher(`/v1/agents/${agent}/stream?since=0`, [agent], urls)),
    new Watcher(`/v1/stream?agents=${some.join()}&since=0`, some, urls),
    new Watcher('/v1/stream?since=0', some, urls),
  ]
}
