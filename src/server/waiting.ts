import { isHeld } from '../base/fenced.js'
import type { HttpServer } from '../http/server.js'
import type { ClusterNode } from './cluster-node.js'
import type { StandBy } from './cluster-stand-by.js'
import type { Standing } from './state.js'

/** What a server does around its waiting. */
interface Around {
  /** @throws Error; `isHeld` where another node owns the shards */
  openShards(): Promise<void>
  listen(): Promise<HttpServer>
}

/** The server was stopped while it stood by. */
export class Stopped extends Error {}

/**
 * What a server waits for before it serves: a node of a cluster, for the shards to be its own. It listens meanwhile, so that
 * whoever asks is told that another node serves.
 */
export class Waiting {
  /** Resolves to where it listens once it waits; never where it need not. */
  readonly url: Promise<string>
  readonly #standing: Standing
  #tellUrl: (url: string) => void = () => {}
  #http: HttpServer | undefined
  #standBy: StandBy | undefined
  #stopped = false
  #isOver = false

  constructor(standing: Standing) {
    this.#standing = standing
    this.url = new Promise((resolve) => (this.#tellUrl = resolve))
  }

  /** Whether all is there that a request needs. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether it was stopped before that. */
  get stopped(): boolean {
    return this.#stopped
  }

  /**
   * Opens the shards, as soon as they are this node's.
   * @param cluster absent for a server of its own, which need not wait
   * @returns where it listens already
   */
  async untilOpen(
    cluster: ClusterNode | undefined,
    { openShards, listen }: Around,
  ): Promise<HttpServer | undefined> {
    if (cluster?.hasOthers === true) await this.#turnOf(cluster, listen)
    for (;;) {
      try {
        await openShards()
        break
      } catch (error) {
        if (cluster === undefined || !(error instanceof Error) || !isHeld(error)) throw error
        await this.#turnOf(cluster, listen)
      }
    }
    cluster?.serves()
    return this.#http
  }

  /** Requests are answered from now on. */
  over(): void {
    this.#isOver = true
    this.#standing.waiting = undefined
  }

  /** Ends it, before it is over. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#standBy?.stop()
  }

  async #turnOf(cluster: ClusterNode, listen: Around['listen']): Promise<void> {
    const standBy = cluster.standBy()
    this.#standBy = standBy
    this.#standing.waiting = () => standBy.refusal
    this.#http ??= await listen()
    this.#tellUrl(this.#http.url)
    if (!(await standBy.turn) || this.#stopped) throw new Stopped('The server was stopped while it stood by')
  }
}
