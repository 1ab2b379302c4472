import type { HttpServer } from '../../front/http/server.js'
import type { Shards } from '../../dispatch/links/shards.js'
import type { ClusterNode } from './node.js'
import type { Standing } from '../../server/state.js'

/** The server was stopped before it served. */
export class Stopped extends Error {}

/** Pause between two looks whether a node reaches all shards, milliseconds. */
const LOOK_MS = 20

/**
 * What a node of a cluster waits for before it answers: that every shard is its own, or reached by a link. It listens meanwhile, so
 * that whoever asks is told that another node serves.
 */
export class Waiting {
  /** Resolves to where it listens once it waits; never where it need not. */
  readonly url: Promise<string>
  readonly #standing: Standing
  #tellUrl: (url: string) => void = () => {}
  #http: HttpServer | undefined
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
   * Waits until every shard is served.
   * @returns where it listens already
   */
  async untilServed(
    cluster: ClusterNode,
    { shards, listen }: { shards: Shards; listen(): Promise<HttpServer> },
  ): Promise<HttpServer | undefined> {
    while (shards.leaseRefusal() !== undefined) {
      if ((cluster.hasOthers || cluster.refuses) && this.#http === undefined) {
        this.#standing.waiting = () => cluster.refusal
        this.#http = await listen()
        this.#tellUrl(this.#http.url)
      }
      this.check()
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    return this.#http
  }

  /** @throws Stopped */
  check(): void {
    if (this.#stopped) throw new Stopped('The server was stopped while it stood by')
  }

  /** Requests are answered from now on. */
  over(): void {
    this.#isOver = true
    this.#standing.waiting = undefined
  }

  /** Ends it, before it is over. */
  stop(): void {
    this.#stopped = true
  }
}
