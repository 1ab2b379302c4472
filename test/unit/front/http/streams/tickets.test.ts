import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rootNamespace } from '../../../../../src/auth/namespace.js'
import { createLogger } from '../../../../../src/base/log.js'
import { pooledRandom } from '../../../../../src/base/random.js'
import { SealedJournal } from '../../../../../src/data/sealed-journal.js'
import { ApiKeys } from '../../../../../src/front/http/auth/api-keys.js'
import { principalOf } from '../../../../../src/front/http/auth/tokens.js'
import { Tickets } from '../../../../../src/front/http/streams/tickets.js'
import type { Principal } from '../../../../../src/front/routes/route.js'
import { Peers } from '../../../../../src/cluster/links/peers.js'
import { routedTickets } from '../../../../../src/cluster/links/routed.js'

let directory = ''
let nowMs = 1_000_000

beforeEach(() => {
  nowMs = 1_000_000
  directory = mkdtempSync(join(tmpdir(), 'strandfast-tickets-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const key: Principal = { id: 'key_1', scopes: new Set(), agents: ['a'] }
const deletedKey: Principal = { ...key, id: 'key_2' }
const user = principalOf(rootNamespace('default'), {
  sub: 'u1',
  email: 'ann@example.com',
  app_metadata: { team: 'a' },
  user_metadata: {},
  iat: 1,
  exp: 2_000_000_000,
  jti: 'j',
  iss: 'i',
  sid: 's',
  amr: ['pwd'],
})
const use = { address: '192.0.2.1', stream: 'a' }

/** The tickets of a new process with the same data directory. */
function restart(perPrincipal = 3): Tickets {
  const journal = new SealedJournal({
    path: join(directory, 'stream-tickets'),
    masterSeed: Buffer.alloc(32),
    context: { purpose: 'strandfast/stream-tickets/v1', boundTo: Buffer.alloc(0) },
    random: pooledRandom(),
    bytesMax: 1_000_000,
    failed(error) {
      throw error
    },
  })
  const tickets = new Tickets(() => nowMs, perPrincipal, journal)
  tickets.restore((id) => (id === key.id ? key : undefined))
  return tickets
}

const issueTicket = (tickets: Tickets, principal = key) => String(tickets.issue(principal))

describe('tickets of a process that has ended', () => {
  it('are valid for their principals within their minute', () => {
    const first = restart()
    const tickets = [issueTicket(first), issueTicket(first, user), issueTicket(first, deletedKey)]
    nowMs += 59_999
    first.close()
    const next = restart()
    expect(tickets.map((ticket) => next.redeem(ticket, use))).toEqual([key, user, undefined])
    next.close()
    nowMs += 60_000
    expect(tickets.map((ticket) => restart().redeem(ticket, use))).toEqual([undefined, undefined, undefined])
  })

  it('are valid only for their address and stream, and get a new minute if their stream was open', () => {
    const first = restart()
    const [open, closed] = [issueTicket(first), issueTicket(first)]
    for (const ticket of [open, closed]) expect(first.redeem(ticket, use)).toBe(key)
    const [, release] = [first.hold(open, key), first.hold(closed, key)]
    release?.()
    first.close()
    nowMs += 3_600_000
    const next = restart()
    expect(next.redeem(closed, use)).toBeUndefined()
    expect(next.redeem(open, { ...use, address: '192.0.2.2' })).toBeUndefined()
    expect(next.redeem(open, { ...use, stream: 'b' })).toBeUndefined()
    nowMs += 59_999
    expect(next.redeem(open, use)).toBe(key)
  })

  it('count toward the limits of their principals', () => {
    const first = restart(3)
    const unused = [issueTicket(first), issueTicket(first), issueTicket(first)]
    first.close()
    const next = restart(2)
    expect(unused.map((ticket) => next.redeem(ticket, use) === key)).toEqual([true, true, false])
    expect([issueTicket(next), issueTicket(next)].length).toBe(2)
    expect(next.issue(key)).toMatchObject({ code: 'too_many_streams' })
  })

  it('are revoked with their key', () => {
    const first = restart()
    const [unused, open] = [issueTicket(first), issueTicket(first)]
    first.redeem(open, use)
    first.hold(open, key)
    first.revoke(key.id)
    first.close()
    const next = restart()
    for (const ticket of [unused, open]) expect(next.redeem(ticket, use)).toBeUndefined()
  })
})

describe('a ticket of another node of a cluster', () => {
  it('is answered 503 while that node is unreachable, because the node keeps it across a restart', async () => {
    const log = createLogger('silent', 'test')
    const peers = new Peers({ links: [], log })
    const apiKeys = new ApiKeys(() => {})
    const tickets = routedTickets(new Tickets(() => nowMs, 1), { node: 'a', apiKeys, peers, failed() {} })
    const own = String(await tickets.issue(key))
    expect(await tickets.redeem(own, use)).toBe(key)
    const other = `${Buffer.from('b').toString('base64url')}.${own.split('.')[1]}`
    await expect(tickets.redeem(other, use)).rejects.toMatchObject({ refusal: { code: 'unavailable' } })
    for (const none of ['nothing', '', '.']) expect(await tickets.redeem(none, use)).toBeUndefined()
  })
})
