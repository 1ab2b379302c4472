import { steadyClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import type { PeerPlace, PeersTold } from '../../server/calls/front-messages.js'
import { PeerLink, type LinkParts } from './peer-link.js'

/** What a front's links to other nodes need. */
export type PeersParts = Omit<LinkParts, 'own'> & {
  log: Logger
  /** Another node is about to give all its shards up. */
  stops?(place: PeerPlace): void
}

/** Another node, and the link to it. */
interface Peer {
  place: PeerPlace
  link: PeerLink | undefined
  isConnecting: boolean
  triedAtMs: number
  /** What was told last of a link that did not come up, or ended. */
  told: string
}

/**
 * The links of one front to all other nodes that are alive: whichever of them has a shard open serves it over its link
 * (docs/adr/0047-links.md).
 */
export class Peers {
  readonly #parts: PeersParts
  readonly #peers = new Map<string, Peer>()
  #own: PeersTold['own'] | undefined
  #retries: NodeJS.Timeout | undefined
  #isOver = false

  constructor(parts: PeersParts) {
    this.#parts = parts
  }

  /** Which other nodes are alive, and who this one is. */
  follow({ own, peers }: PeersTold): void {
    if (this.#isOver) return
    this.#own = own
    this.#retries ??= setInterval(() => this.#connectAll(), limits.linkRetryMs)
    const wanted = new Map(peers.map((place) => [place.node, place]))
    for (const [node, { place, link }] of this.#peers) {
      if (isSame(wanted.get(node), place)) continue
      this.#peers.delete(node)
      link?.close('the node is not alive any more')
    }
    for (const place of peers) {
      if (this.#peers.has(place.node)) continue
      this.#peers.set(place.node, {
        place,
        link: undefined,
        isConnecting: false,
        triedAtMs: -Infinity,
        told: '',
      })
    }
    this.#connectAll()
  }

  /** The links that are up, by the names of the nodes. */
  get open(): ReadonlyMap<string, PeerLink> {
    const open = new Map<string, PeerLink>()
    for (const [node, { link }] of this.#peers) if (link?.isUp === true) open.set(node, link)
    return open
  }

  /** Whether the link to a node is up: so it says that it has a lease, as that incarnation where one is named. */
  reaches(node: string, incarnation?: number): boolean {
    const { place, link } = this.#peers.get(node) ?? {}
    return link?.isUp === true && (incarnation === undefined || incarnation === place?.incarnation)
  }

  /** The link by which a shard is served; undefined where none does. */
  of(shard: number): PeerLink | undefined {
    for (const { link } of this.#peers.values()) if (link?.serves(shard) === true) return link
    return undefined
  }

  /** Whether the disk of one of them is nearly full. */
  get readOnly(): boolean {
    for (const { link } of this.#peers.values()) if (link?.readOnly === true) return true
    return false
  }

  /** Ends all of them. To be called when this front answers nobody any more. */
  close(): void {
    this.#isOver = true
    clearInterval(this.#retries)
    for (const { link } of this.#peers.values()) link?.end()
  }

  /** Tries those that it has tried longest ago: some that do not answer must not keep it from the others. */
  #connectAll(): void {
    const nowMs = steadyClock()
    const all = [...this.#peers.values()]
    const dueSince = nowMs - limits.linkRetryMs
    const due = all.filter(
      (peer) => peer.link === undefined && !peer.isConnecting && peer.triedAtMs <= dueSince,
    )
    const free = limits.linkTriesMax - all.filter((peer) => peer.isConnecting).length
    const first = due.toSorted((one, other) => one.triedAtMs - other.triedAtMs)
    for (const peer of first.slice(0, Math.max(0, free))) void this.#connect(peer)
  }

  async #connect(peer: Peer): Promise<void> {
    const own = this.#own
    if (own === undefined) return
    peer.isConnecting = true
    peer.triedAtMs = steadyClock()
    const { log, stops, ...parts } = this.#parts
    const { node } = peer.place
    try {
      const link = await PeerLink.connect(
        peer.place,
        { ...parts, own },
        {
          up: () => {
            peer.told = ''
            log.info({ peer: node }, 'takes requests for the shards of another node')
          },
          stops: () => stops?.(peer.place),
          ended: (reason) => {
            peer.link = undefined
            this.#tell(peer, reason)
          },
        },
      )
      if (this.#isOver || this.#peers.get(node) !== peer) link.close('the node is not alive any more')
      else if (link.isOpen) peer.link = link
    } catch (error) {
      this.#tell(peer, error instanceof Error ? error.message : String(error))
    } finally {
      peer.isConnecting = false
    }
  }

  /** The same reason once. */
  #tell(peer: Peer, reason: string): void {
    if (this.#isOver || this.#peers.get(peer.place.node) !== peer || reason === peer.told) return
    peer.told = reason
    const { node, host, port } = peer.place
    this.#parts.log.warn(
      { peer: node, link: `${host}:${port}`, reason },
      'no link to another node: it is tried again',
    )
  }
}

function isSame(one: PeerPlace | undefined, other: PeerPlace): boolean {
  return one?.incarnation === other.incarnation && one.host === other.host && one.port === other.port
}
