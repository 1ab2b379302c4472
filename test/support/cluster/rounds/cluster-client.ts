import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { rootKey } from '../../../../scripts/crash-loop/victim.mjs'

/** One request of a load. */
export interface Ask {
  method: string
  path: string
  headers?: Record<string, string>
  body?: string
  /** The root key when absent. */
  key?: string
}

/** What a node answered. */
export interface Answered {
  status: number
  replayed: boolean
  text: string
  // Loads look into answers of every shape.
  // oxlint-disable-next-line no-explicit-any
  body: any
}

/** How long a client waits for a node before it asks another one: nodes are stopped for longer. */
const PATIENCE_MS = 1_500

/** How long it rests when no node serves. */
const REST_MS = 20

/** The server closes a connection by which nothing came for ten seconds: none is left idle for so long. */
const agent = new Agent({ keepAlive: true, timeout: 5_000 })

/** A request as it is sent: a JSON body where `body` is given. */
export function posting(path: string, body: unknown, more: Partial<Ask> = {}): Ask {
  const headers = { 'content-type': 'application/json', ...more.headers }
  return { method: 'POST', path, body: JSON.stringify(body), ...more, headers }
}

/**
 * Sends a request to one node.
 * @returns undefined where it was not answered whole: nobody knows whether it was carried out
 */
export function askNode(url: string, ask: Ask, patienceMs = PATIENCE_MS): Promise<Answered | undefined> {
  const { method, path, headers = {}, body, key = rootKey } = ask
  return new Promise((resolve) => {
    const length = body === undefined ? {} : { 'content-length': `${Buffer.byteLength(body)}` }
    const asked = request(url + path, {
      method,
      agent,
      headers: { authorization: `Bearer ${key}`, ...headers, ...length },
    })
    const timer = setTimeout(() => asked.destroy(), patienceMs)
    const done = (answer?: Answered) => {
      clearTimeout(timer)
      resolve(answer)
    }
    asked.on('error', () => done())
    asked.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => (text += piece))
      response.on('error', () => done())
      response.on('close', () => done())
      response.on('end', () => {
        const { statusCode: status = 0, headers: told } = response
        const isJson = told['content-type']?.includes('json') === true && !path.includes('/export')
        const replayed = told['idempotency-replayed'] === 'true'
        done({ status, replayed, text, body: isJson && text !== '' ? JSON.parse(text) : undefined })
      })
    })
    asked.end(body)
  })
}

/** A client of a cluster, which finds the node that serves by asking all. */
export class ClusterClient {
  readonly #urls: () => readonly string[]
  readonly #anyAnswers: boolean
  /** What is sent again and again, and what it was answered last. */
  readonly #waiting = new Map<Ask, string>()
  #last = ''
  #isOver = false

  /** @param urls of the nodes that run now; @param anyAnswers whether any of them may be asked, so that each is in turn */
  constructor(urls: () => readonly string[], anyAnswers: boolean) {
    this.#urls = urls
    this.#anyAnswers = anyAnswers
  }

  /**
   * Sends what may be sent again, until it is answered by a node that serves: a read, or a write under an Idempotency-Key.
   * @param patienceMs how long it waits for each node
   */
  async insist(ask: Ask, patienceMs?: number): Promise<Answered> {
    while (!this.#isOver) {
      for (const url of this.#inOrder()) {
        const answer = await askNode(url, ask, patienceMs)
        this.#waiting.set(ask, `${url}: ${answer?.status} ${answer?.text}`)
        if (answer === undefined || answer.status === 503) continue
        this.#last = url
        this.#waiting.delete(ask)
        return answer
      }
      await pause(REST_MS)
    }
    throw new Error('Nobody is asked any more')
  }

  /** What is not answered yet, for a reader of what went wrong. */
  describe(): string {
    const asks = [...this.#waiting].map(([{ method, path }, told]) => `${method} ${path}, ${told}`)
    return `${asks.length} requests wait: ${asks.slice(0, 5).join('; ')}`
  }

  /** Nobody waits for an answer any more. */
  end(): void {
    this.#isOver = true
  }

  /**
   * Sends a write that may be carried out once only. A node that says that it is not available has not begun, unless it
   * says how much it has accepted.
   * @returns undefined where nobody knows whether it was carried out
   */
  async once(ask: Ask): Promise<Answered | undefined> {
    while (!this.#isOver) {
      for (const url of this.#inOrder()) {
        const answer = await askNode(url, ask)
        const { code, accepted } = answer?.body ?? {}
        if (answer?.status === 503 && code === 'unavailable' && accepted === undefined) continue
        if (answer === undefined || answer.status === 503) return undefined
        this.#last = url
        return answer
      }
      await pause(REST_MS)
    }
    return undefined
  }

  /** The node that served last is asked first, or that which comes behind it. */
  #inOrder(): string[] {
    const urls = this.#urls()
    if (this.#anyAnswers) {
      const next = urls.indexOf(this.#last) + 1
      return [...urls.slice(next), ...urls.slice(0, next)]
    }
    const others = urls.filter((url) => url !== this.#last)
    return urls.includes(this.#last) ? [this.#last, ...others] : others
  }
}
