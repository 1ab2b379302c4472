import { isHeld } from '../base/fenced.js'
import type { Handling } from '../http/handling.js'
import type { FrontFigures } from '../http/request-counts.js'
import type { HttpServer } from '../http/server.js'
import type { ClusterNode } from './cluster-node.js'
import type { ClusterFrontParts } from './cluster-front.js'
import type { StandBy } from './cluster-stand-by.js'
import { figuresOf } from './figures.js'
import { drain, type Front } from './front.js'
import type { Standing } from './state.js'

/** What a server does around its waiting. */
interface Around {
  /** @throws Error; `isHeld` where another node owns the shards */
  openShards(): Promise<void>
  listen(): Promise<HttpServer>
  /** Of this server itself. */
  handling: Handling
  /** What a front for another node is made of. */
  front(): Omit<ClusterFrontParts, 'node' | 'incarnation' | 'key' | 'log' | 'use'>
}

/** The number in metrics of the front that takes requests for another node; this process has no other than 0 meanwhile. */
const WAITING_FRONT = 1

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
  /** Takes requests for the node that owns the shards. */
  #front: Front | undefined
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

  /** What the front that takes requests for another node has counted. */
  get frontFigures(): FrontFigures[] {
    return this.#front === undefined ? [] : [figuresOf(WAITING_FRONT, this.#front.parts)]
  }

  /**
   * Opens the shards, as soon as they are this node's.
   * @param cluster absent for a server of its own, which need not wait
   * @returns where it listens already
   */
  async untilOpen(cluster: ClusterNode | undefined, around: Around): Promise<HttpServer | undefined> {
    if (cluster?.hasOthers === true) await this.#turnOf(cluster, around)
    for (;;) {
      try {
        await around.openShards()
        break
      } catch (error) {
        if (cluster === undefined || !(error instanceof Error) || !isHeld(error)) throw error
        await this.#turnOf(cluster, around)
      }
    }
    return this.#http
  }

  /** Requests are answered from now on. */
  over(): void {
    this.#isOver = true
    this.#standing.waiting = undefined
  }

  /** Ends it, before it is over. @param drainMs how long it waits for requests that are being answered */
  async stop(drainMs: number): Promise<void> {
    this.#stopped = true
    if (this.#front !== undefined) await drain(this.#front, drainMs)
    await this.#standBy?.stop()
  }

  /** Requests go to another front from now on, or to none. */
  #use({ handling }: Around, front: Front | undefined): void {
    this.#front = front
    this.#http?.use(front?.handling ?? handling)
  }

  async #turnOf(cluster: ClusterNode, around: Around): Promise<void> {
    this.#http ??= await around.listen()
    const standBy = cluster.standBy({ ...around.front(), use: (front) => this.#use(around, front) })
    this.#standBy = standBy
    this.#standing.waiting = () => standBy.refusal
    this.#tellUrl(this.#http.url)
    const isTurn = await standBy.turn
    this.#use(around, undefined)
    if (!isTurn || this.#stopped) throw new Stopped('The server was stopped while it stood by')
  }
}
