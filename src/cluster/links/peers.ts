import { steadyClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import type { PeerAddress, PeerNotices } from '../host.js'
import { PeerLink, type LinkParts } from './peer-link.js'

/** Dependencies of a front's links to other nodes. */
export type PeersParts = Omit<LinkParts, 'own'> & {
  log: Logger
  /** Another node is about to release all its shards. */
  peerStopping?(address: PeerAddress): void
}

/** Another node, and the link to it. */
interface Peer {
  address: PeerAddress
  link: PeerLink | undefined
  isConnecting: boolean
  triedAtMs: number
  /** When it last said that it uses another database. */
  elsewhereAtMs: number
  /** The last logged reason for which the link is down. */
  lastLogged: string
}

/**
 * The links of one front to all other live nodes. The node that has a shard open serves it over its link
 * (docs/adr/0047-links.md).
 */
export class Peers {
  readonly #parts: PeersParts
  readonly #peers = new Map<string, Peer>()
  #own: PeerNotices['own'] | undefined
  #retries: NodeJS.Timeout | undefined
  #isOver = false

  constructor(parts: PeersParts) {
    this.#parts = parts
  }

  /** Sets the identity of this node and the list of other live nodes. */
  follow({ own, peers }: PeerNotices): void {
    if (this.#isOver) return
    this.#own = own
    this.#retries ??= setInterval(() => this.#connectAll(), limits.linkRetryMs)
    const wanted = new Map(peers.map((address) => [address.node, address]))
    for (const [node, { address, link }] of this.#peers) {
      if (isSame(wanted.get(node), address)) continue
      this.#peers.delete(node)
      link?.close('the node is not alive any more')
    }
    for (const address of peers) {
      if (this.#peers.has(address.node)) continue
      this.#peers.set(address.node, {
        address,
        link: undefined,
        isConnecting: false,
        triedAtMs: -Infinity,
        elsewhereAtMs: -Infinity,
        lastLogged: '',
      })
    }
    this.#connectAll()
  }

  /** The links that are up, by node name. */
  get open(): ReadonlyMap<string, PeerLink> {
    const open = new Map<string, PeerLink>()
    for (const [node, { link }] of this.#peers) if (link?.isUp === true) open.set(node, link)
    return open
  }

  /**
   * Whether the link to a node is up, which means that the node has a lease; with that incarnation, if one is
   * given.
   */
  reaches(node: string, incarnation?: number): boolean {
    const { address, link } = this.#peers.get(node) ?? {}
    return link?.isUp === true && (incarnation === undefined || incarnation === address?.incarnation)
  }

  /**
   * Whether a node has a lease, but from another database than that of this node: one of them is a copy.
   * @param node any node if absent
   */
  isElsewhere(node?: string): boolean {
    const sinceMs = steadyClock() - limits.linkHandshakeMs
    const peers = node === undefined ? [...this.#peers.keys()] : [node]
    return peers.some((name) => (this.#peers.get(name)?.elsewhereAtMs ?? -Infinity) > sinceMs)
  }

  /** The link over which a shard is served; undefined if there is none. */
  of(shard: number): PeerLink | undefined {
    for (const { link } of this.#peers.values()) if (link?.serves(shard) === true) return link
    return undefined
  }

  /** Closes all links. Call it after this front has stopped answering. */
  close(): void {
    this.#isOver = true
    clearInterval(this.#retries)
    for (const { link } of this.#peers.values()) link?.end()
  }

  /** Connects to the nodes tried longest ago first, so that unreachable ones do not block the others. */
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
    const { log, peerStopping: stops, ...parts } = this.#parts
    const { node } = peer.address
    try {
      const link = await PeerLink.connect(
        peer.address,
        { ...parts, own },
        {
          up: () => {
            peer.lastLogged = ''
            log.info({ peer: node }, 'connected to another node: forwarding requests for its shards')
          },
          stops: () => stops?.(peer.address),
          elsewhere: () => (peer.elsewhereAtMs = steadyClock()),
          ended: (reason) => {
            peer.link = undefined
            this.#logFailure(peer, reason)
          },
        },
      )
      if (this.#isOver || this.#peers.get(node) !== peer) link.close('the node is not alive any more')
      else if (link.isOpen) peer.link = link
    } catch (error) {
      this.#logFailure(peer, error instanceof Error ? error.message : String(error))
    } finally {
      peer.isConnecting = false
    }
  }

  /** Logs the same reason once. */
  #logFailure(peer: Peer, reason: string): void {
    if (this.#isOver || this.#peers.get(peer.address.node) !== peer || reason === peer.lastLogged) return
    peer.lastLogged = reason
    const { node, host, port } = peer.address
    this.#parts.log.warn({ peer: node, link: `${host}:${port}`, reason }, 'no link to another node: retrying')
  }
}

function isSame(one: PeerAddress | undefined, other: PeerAddress): boolean {
  return one?.incarnation === other.incarnation && one.host === other.host && one.port === other.port
}
