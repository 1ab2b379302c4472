import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { rootKey } from '../../../../scripts/crash-loop/victim.mjs'

/** A request of a load. */
export interface LoadRequest {
  method: string
  path: string
  headers?: Record<string, string>
  body?: string
  /** The root key when absent. */
  key?: string
}

/** The answer of a node. */
export interface LoadAnswer {
  status: number
  replayed: boolean
  text: string
  // Loads read answers of every shape.
  // oxlint-disable-next-line no-explicit-any
  body: any
}

/** Time limit of a request before another node is tried, milliseconds; nodes are stopped for longer. */
const TIMEOUT_MS = 1_500

/** Whether another node, or the same one later, may answer: it is not ready, or its disk is full. */
const isAway = ({ status }: LoadAnswer) => status === 503 || status === 507

/** Pause when no node serves, milliseconds. */
const REST_MS = 20

/** The server closes a connection after ten idle seconds, so none may be idle for that long. */
const agent = new Agent({ keepAlive: true, timeout: 5_000 })

/** A request with a JSON body, if `body` is given. */
export function posting(path: string, body: unknown, more: Partial<LoadRequest> = {}): LoadRequest {
  const headers = { 'content-type': 'application/json', ...more.headers }
  return { method: 'POST', path, body: JSON.stringify(body), ...more, headers }
}

/**
 * Sends a request to one node.
 * @returns undefined if there was no complete answer: the outcome is unknown
 */
export function requestNode(
  url: string,
  { method, path, headers = {}, body, key = rootKey }: LoadRequest,
  timeoutMs = TIMEOUT_MS,
): Promise<LoadAnswer | undefined> {
  return new Promise((resolve) => {
    const length = body === undefined ? {} : { 'content-length': `${Buffer.byteLength(body)}` }
    const sent = request(url + path, {
      method,
      agent,
      headers: { authorization: `Bearer ${key}`, ...headers, ...length },
    })
    const timer = setTimeout(() => sent.destroy(), timeoutMs)
    const done = (answer?: LoadAnswer) => {
      clearTimeout(timer)
      resolve(answer)
    }
    sent.on('error', () => done())
    sent.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => (text += piece))
      response.on('error', () => done())
      response.on('close', () => done())
      response.on('end', () => {
        const { statusCode: status = 0, headers: answered } = response
        const isJson = answered['content-type']?.includes('json') === true && !path.includes('/export')
        const replayed = answered['idempotency-replayed'] === 'true'
        done({ status, replayed, text, body: isJson && text !== '' ? JSON.parse(text) : undefined })
      })
    })
    sent.end(body)
  })
}

/** A client of a cluster, which finds the serving node by trying all. */
export class ClusterClient {
  readonly #urls: () => readonly string[]
  readonly #anyAnswers: boolean
  /** Pending requests, and their last answers. */
  readonly #pending = new Map<LoadRequest, string>()
  #last = ''
  #isOver = false

  /**
   * @param urls of the running nodes
   * @param anyAnswers whether every node answers, so that the client uses them one after another
   */
  constructor(urls: () => readonly string[], anyAnswers: boolean) {
    this.#urls = urls
    this.#anyAnswers = anyAnswers
  }

  /**
   * Repeats a request until a serving node answers: a read, or a write with an Idempotency-Key.
   * @param timeoutMs time limit for each node
   */
  async insist(request: LoadRequest, timeoutMs?: number): Promise<LoadAnswer> {
    while (!this.#isOver) {
      for (const url of this.#inOrder()) {
        const answer = await requestNode(url, request, timeoutMs)
        this.#pending.set(request, `${url}: ${answer?.status} ${answer?.text}`)
        if (answer === undefined || isAway(answer)) continue
        this.#last = url
        this.#pending.delete(request)
        return answer
      }
      await pause(REST_MS)
    }
    throw new Error('The client has ended')
  }

  /** Pending requests, for diagnosis. */
  describe(): string {
    const pending = [...this.#pending].map(([{ method, path }, last]) => `${method} ${path}, ${last}`)
    return `${pending.length} requests wait: ${pending.slice(0, 5).join('; ')}`
  }

  /** Ends the pending requests. */
  end(): void {
    this.#isOver = true
  }

  /**
   * Sends a write that must not be repeated. A node that answers "unavailable" has not begun, unless the
   * answer states how much it has accepted.
   * @returns undefined if the outcome is unknown
   */
  async once(request: LoadRequest): Promise<LoadAnswer | undefined> {
    while (!this.#isOver) {
      for (const url of this.#inOrder()) {
        const answer = await requestNode(url, request)
        const { code, accepted } = answer?.body ?? {}
        const isUnbegun = accepted === undefined && (code === 'unavailable' || code === 'storage_full')
        if (answer !== undefined && isAway(answer) && isUnbegun) continue
        if (answer === undefined || isAway(answer)) return undefined
        this.#last = url
        return answer
      }
      await pause(REST_MS)
    }
    return undefined
  }

  /** The node that served last comes first; with `anyAnswers`, the one after it. */
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
