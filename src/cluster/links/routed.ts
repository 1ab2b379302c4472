import { auditAgent } from '../../strand/organism-id.js'
import { refuse, RefusedError } from '../../base/errors.js'
import type { LoginGate } from '../../dispatch/duties/login-gate.js'
import type { ReaderPool } from '../../dispatch/pools/reader-pool.js'
import type { Readers } from '../../protocol/reader-tasks.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import type { ApiKeys } from '../../front/http/auth/api-keys.js'
import type { StreamTickets, Tickets } from '../../front/http/streams/tickets.js'
import type { PeerLink } from './peer-link.js'
import type { Peers } from './peers.js'

/*
 * What one node of a cluster keeps for all, or does with a shard that it owns: asked by every front, wherever that is
 * (docs/adr/0048-owners-of-shards.md).
 */

/** Where shards are. */
export interface Routes {
  threads: ShardThreads
  peers: Peers
}

const away = refuse('unavailable', 'No node serves the shard of this agent just now, try again', {
  retryAfterSecs: 1,
})

/** Whether this node has a shard, or else the link to who has; waits while it moves. @throws RefusedError where nobody has it */
async function ownerOf(shard: number, { threads, peers }: Routes): Promise<PeerLink | 'own'> {
  await threads.shards.untilCurrent(shard)
  const owner = threads.serves(shard) ? 'own' : peers.of(shard)
  if (owner === undefined) throw new RefusedError(away)
  return owner
}

/** Long reads, by the pool of the node that has the shard. */
export function routedReaders(own: ReaderPool, routes: Routes): Readers {
  return {
    isFull: () => own.isFull(),
    async run(read) {
      if (!('shard' in read.task)) return own.run(read)
      for (let isFirst = true; ; isFirst = false) {
        const owner = await ownerOf(read.task.shard, routes)
        try {
          return owner === 'own' ? await own.run(read) : await owner.call('read', read)
        } catch (error) {
          // It may have moved meanwhile, and has done nothing.
          const isAway = error instanceof RefusedError && error.refusal.code === 'unavailable'
          if (!isAway || !isFirst) throw error
        }
      }
    },
  }
}

/** Logins, through the gate of the node that has the audit strand: attempts are counted in one place. */
export function routedGate(own: LoginGate, routes: Routes): Pick<LoginGate, 'run'> {
  return {
    async run(key, attempt) {
      try {
        const owner = await ownerOf(routes.threads.shards.shardOf(auditAgent), routes)
        return owner === 'own' ? await own.run(key, attempt) : await owner.gate.run(key, attempt)
      } catch (error) {
        if (error instanceof RefusedError) return error.refusal
        throw error
      }
    },
  }
}

/** The node that keeps a ticket may be starting again, and has it then. */
const keeperAway = refuse('unavailable', 'The node that this ticket names cannot be reached, try again', {
  retryAfterSecs: 1,
})

/** What the tickets of a node need to know. */
interface TicketsAround {
  node: string
  apiKeys: ApiKeys
  peers: Peers
  failed(error: unknown): void
}

/** Tickets of all nodes: each names the one that keeps it. A key that opens a stream by one has to be known here. */
export function routedTickets(own: Tickets, { node, apiKeys, peers, failed }: TicketsAround): StreamTickets {
  let holds = 0
  const placeOf = (ticket: string) => {
    const at = ticket.lastIndexOf('.')
    const name = Buffer.from(ticket.slice(0, Math.max(0, at)), 'base64url').toString()
    const kept = ticket.slice(at + 1)
    return name === node ? { own, kept } : { link: peers.open.get(name), isNamed: name !== '', kept }
  }
  return {
    issue(principal) {
      const ticket = own.issue(principal)
      return typeof ticket === 'string' ? `${Buffer.from(node).toString('base64url')}.${ticket}` : ticket
    },
    async redeem(ticket, use) {
      const { own: here, link, isNamed, kept } = placeOf(ticket)
      if (here !== undefined) return here.redeem(kept, use)
      if (link === undefined && isNamed) throw new RefusedError(keeperAway)
      const found = await link?.call('ticketRedeem', { ticket: kept, use })
      return found?.key === undefined ? found : apiKeys.ofId(found.id)
    },
    hold(ticket, principal) {
      const { own: here, link, kept } = placeOf(ticket)
      if (here !== undefined) return here.hold(kept, principal)
      if (link === undefined) return undefined
      const hold = holds++
      link.call('ticketHold', { ticket: kept, principal, hold }).catch(failed)
      return () => void link.call('ticketRelease', hold).catch(failed)
    },
  }
}
