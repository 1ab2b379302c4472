import { auditAgent } from '../../strand/organism-id.js'
import { refuse, RefusedError } from '../../base/errors.js'
import type { ReaderPool } from '../../dispatch/pools/reader-pool.js'
import { type LoginPermits, remotePermits } from '../../protocol/login-permits.js'
import type { Readers } from '../../protocol/reader-tasks.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import type { ApiKeys } from '../../front/http/auth/api-keys.js'
import type { StreamTickets, Tickets } from '../../front/http/streams/tickets.js'
import type { PeerLink } from './peer-link.js'
import type { Peers } from './peers.js'

/*
 * Services that one node provides for all nodes, or runs on a shard that it owns; fronts of all nodes call
 * them (docs/adr/0048-owners-of-shards.md).
 */

/** Where shards are served. */
export interface Routes {
  threads: ShardThreads
  peers: Peers
}

const noOwner = refuse('unavailable', 'No node serves the shard of this agent at the moment, try again', {
  retryAfterSecs: 1,
})

/**
 * Finds the owner of a shard: this node, or the link to another one. Waits while the shard moves.
 * @throws RefusedError if it has no owner
 */
async function ownerOf(shard: number, { threads, peers }: Routes): Promise<PeerLink | 'own'> {
  await threads.shards.untilCurrent(shard)
  const owner = threads.serves(shard) ? 'own' : peers.of(shard)
  if (owner === undefined) throw new RefusedError(noOwner)
  return owner
}

/** Long reads, run by the reader pool of the node that owns the shard. */
export function routedReaders(own: ReaderPool, routes: Routes): Readers {
  return {
    async run(read) {
      if (!('shard' in read.task)) return own.run(read)
      for (let isFirst = true; ; isFirst = false) {
        const owner = await ownerOf(read.task.shard, routes)
        try {
          return owner === 'own' ? await own.run(read) : await owner.call('read', read)
        } catch (error) {
          // The shard may have moved before the read began: the read had no effect.
          const isAway = error instanceof RefusedError && error.refusal.code === 'unavailable'
          if (!isAway || !isFirst) throw error
        }
      }
    },
  }
}

/**
 * Sign-ins, through the gate of the node that owns the audit strand, so that attempts are counted in one
 * place.
 */
export function routedGate(own: LoginPermits, routes: Routes): LoginPermits {
  return {
    async enter(key) {
      const owner = await ownerOf(routes.threads.shards.shardOf(auditAgent), routes)
      return owner === 'own' ? own.enter(key) : remotePermits(owner.call).enter(key)
    },
  }
}

/** The node that issued the ticket may be restarting; it still has the ticket afterwards. */
const issuerUnreachable = refuse(
  'unavailable',
  'The node that this ticket names cannot be reached, try again',
  {
    retryAfterSecs: 1,
  },
)

interface TicketParts {
  node: string
  apiKeys: ApiKeys
  peers: Peers
  failed(error: unknown): void
}

/**
 * Tickets of all nodes: each names the node that issued it. If a key opens a stream by a ticket, the key must
 * be known here.
 */
export function routedTickets(own: Tickets, { node, apiKeys, peers, failed }: TicketParts): StreamTickets {
  let holds = 0
  const issuerOf = (ticket: string) => {
    const at = ticket.lastIndexOf('.')
    const name = Buffer.from(ticket.slice(0, Math.max(0, at)), 'base64url').toString()
    const id = ticket.slice(at + 1)
    return name === node ? { own, id } : { link: peers.open.get(name), isNamed: name !== '', id }
  }
  return {
    issue(principal) {
      const ticket = own.issue(principal)
      return typeof ticket === 'string' ? `${Buffer.from(node).toString('base64url')}.${ticket}` : ticket
    },
    async redeem(ticket, use) {
      const { own: here, link, isNamed, id } = issuerOf(ticket)
      if (here !== undefined) return here.redeem(id, use)
      if (link === undefined && isNamed) throw new RefusedError(issuerUnreachable)
      const found = await link?.call('ticketRedeem', { ticket: id, use })
      return found?.key === undefined ? found : apiKeys.byId(found.id)
    },
    hold(ticket, principal) {
      const { own: here, link, id } = issuerOf(ticket)
      if (here !== undefined) return here.hold(id, principal)
      if (link === undefined) return undefined
      const hold = holds++
      link.call('ticketHold', { ticket: id, principal, hold }).catch(failed)
      return () => void link.call('ticketRelease', hold).catch(failed)
    },
  }
}
