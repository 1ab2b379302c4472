import { setTimeout as pause } from 'node:timers/promises'
import { verifyExport } from '../../../src/proof/node/verify-export.js'
import { send } from '../../../scripts/crash-loop/request.mjs'
import { rootKey } from '../../../scripts/crash-loop/victim.mjs'

const records = 4
/** The maximum attempts of one step, and the pause between two, milliseconds. */
const TRIES_MAX = 400
const PAUSE_MS = 25

/** The result of a load. */
export interface Findings {
  faults: string[]
  /** The number of 5xx answers before requests succeeded. */
  refused: number
}

type Answer = Awaited<ReturnType<typeof send>>

/** A fixed load of a few requests to one agent. It is idempotent. */
export class FailingLoad {
  readonly #url: string
  readonly #agent: string
  readonly #findings: Findings
  readonly #hashes: string[] = []

  constructor(url: string, agent: string, findings: Findings) {
    this.#url = url
    this.#agent = agent
    this.#findings = findings
  }

  /** Sends the requests, each until it succeeds with its Idempotency-Key, and checks the result. */
  async run(): Promise<void> {
    await this.#send()
    await this.#check()
  }

  async #send(): Promise<void> {
    await this.#surely('POST', '/v1/agents', { key: 'agent', body: { name: this.#agent, zone: 'free' } })
    for (let n = 0; n < records; n++) {
      const { body } = await this.#surely('POST', `/v1/agents/${this.#agent}/records`, {
        key: `n${n}`,
        body: { data: { n } },
      })
      this.#hashes.push(body.content_hash)
      // Read through the shard, and then through a reader thread, which opens the store itself.
      await this.#expectRecord(n, false)
      if (n === 0) await this.#exported()
    }
    await this.#surely('DELETE', this.#pathOf(1), { key: 'delete' })
    await this.#surely('POST', `${this.#pathOf(2)}/erase`, { key: 'erase' })
  }

  async #check(): Promise<void> {
    for (const n of this.#hashes.keys()) await this.#expectRecord(n, n === 1)
    const lines = await this.#exported()
    const verified = await verifyExport(lines)
    if (!verified.ok) this.#fault(`The strand does not verify: ${JSON.stringify(verified)}`)
    const numbers = lines.flatMap((line) => {
      const { h, body }: { h?: string; body?: string } = JSON.parse(line)
      return h?.includes('\ntype record\n') === true ? [body] : []
    })
    const expected = Array.from({ length: records }, (_none, n) => (n === 2 ? undefined : `{"n":${n}}`))
    if (numbers.join() !== expected.join()) this.#fault(`The strand has ${numbers.join()}`)
  }

  #pathOf(n: number): string {
    return `/v1/agents/${this.#agent}/records/${this.#hashes[n]}`
  }

  async #expectRecord(n: number, deleted: boolean): Promise<void> {
    const { body } = await this.#surely('GET', this.#pathOf(n), {})
    // When the load is repeated, the record may already be erased.
    const payload = body.erased === true ? null : { n }
    const right =
      body.record_id === this.#hashes[n] && JSON.stringify(body.payload) === JSON.stringify(payload)
    if (!right || (deleted && body.deleted !== true) || (n !== 1 && body.deleted === true))
      this.#fault(`Record ${n} is shown as ${JSON.stringify(body)}`)
  }

  async #exported(): Promise<string[]> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      try {
        const response = await fetch(`${this.#url}/v1/strand/export?agent=${this.#agent}`, {
          headers: { authorization: `Bearer ${rootKey}` },
        })
        const text = await response.text()
        if (response.status === 200) return text.trimEnd().split('\n')
        this.#refused('GET export', response.status, text)
      } catch (error) {
        // The server aborts an export that fails. If it does not listen any more, retries are useless.
        if (!(error instanceof TypeError) || isRefused(error)) throw error
        this.#findings.refused++
      }
      await pause(PAUSE_MS)
    }
    throw new Error('No attempt returned a complete export')
  }

  /** Sends a request until it succeeds. @throws Error if the server has ended or all attempts fail */
  async #surely(
    method: string,
    path: string,
    { key, body }: { key?: string; body?: object },
  ): Promise<Answer> {
    const headers = {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(key !== undefined && { 'idempotency-key': `${this.#agent}-${key}` }),
    }
    let last: Answer | undefined
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      last = await send(this.#url, {
        method,
        path,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      if (last.status < 300) return last
      this.#refused(`${method} ${path}`, last.status, JSON.stringify(last.body))
      await pause(PAUSE_MS)
    }
    throw new Error(`${method} ${path} never succeeded: ${JSON.stringify(last)}`)
  }

  #refused(request: string, status: number, answer: string): void {
    if (status < 500) this.#fault(`${request} returned ${status} ${answer}`)
    this.#findings.refused++
  }

  #fault(text: string): void {
    this.#findings.faults.push(`${this.#agent}: ${text}`)
  }
}

/** Whether the connection was refused. */
function isRefused({ cause }: TypeError): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED'
}
