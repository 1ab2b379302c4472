import { verifyCheckpoint } from '../../src/proof/node/compare-checkpoint.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { checkedCall } from '../support/http/answers.js'
import { isCaughtUp, openStream, type TestEvent } from '../support/http/events.js'
import { agree, anything } from './matching.js'
import { pathOf, rootOf } from './merkle.js'
import { momentOf } from './moments.js'
import { refusedFor } from './pages.js'
import type { ReadOf } from './reads.js'
import { recordsIn, type Session } from './session.js'
import { viewOf, written } from './strand.js'
import { eventOf } from './subscriber.js'
import { chainOf } from './world.js'

/** Compares an export with the chain, and verifies it offline. */
export async function agreeOnExport(session: Session, read: ReadOf<'export'>): Promise<void> {
  const { agent, by } = read
  const chain = session.world.chains.get(agent) ?? []
  const from = read.from === undefined ? undefined : read.from % Math.max(1, chain.length)
  const to = read.to === undefined ? undefined : (from ?? 0) + read.to
  const query = new URLSearchParams({
    agent,
    ...(from !== undefined && { from_seq: String(from) }),
    ...(to !== undefined && { to_seq: String(to) }),
  })
  const route = `GET /v1/strand/export?${query}`
  const answer = await checkedCall(session.server, route, { key: session.actor(by).key })
  if (refusedFor(session, { agent, by }, { route, answer })) return
  const { erased } = viewOf(chain)
  // An export continues to the signed record that seals its last record.
  const last = chain[Math.min(to ?? chain.length - 1, chain.length - 1)]
  const lastSeq = last?.sealedBy ?? last?.seq ?? 0
  const expected = chain.slice(from ?? 0, lastSeq + 1).map((record) => {
    if (!erased.has(record.hash)) return record
    return { ...record, body: undefined, bodyBytes: 0 }
  })
  agree(route, expected, recordsIn(answer.text))
  // Erased bodies without a record of the erasure in this part.
  const explained = viewOf(expected).erased
  const unexplained = expected.filter(({ hash }) => erased.has(hash) && !explained.has(hash))
  const publicKey = last?.key ?? ''
  const verified = await verifyExport(answer.text.trimEnd().split('\n'), { publicKey })
  agree(
    `${route}: verified`,
    {
      ok: true,
      agent,
      strand: chain[0]?.hash,
      records: expected.length,
      firstSeq: from ?? 0,
      lastSeq,
      chainHead: expected.at(-1)?.hash,
      publicKey: viewOf(chain.slice(0, lastSeq + 1)).key,
      signaturesChecked: expected.filter(({ signature }) => signature !== null).length,
      sealed: expected.filter(({ sealedBy }) => sealedBy !== undefined).length,
      erased: expected.filter(({ hash }) => erased.has(hash)).length,
      withheld: 0,
      imported: 0,
      keys: anything,
      checkpoint: viewOf(chain).key === viewOf(chain.slice(0, lastSeq + 1)).key,
      partial: (from ?? 0) > 0,
      ...(unexplained.length > 0 && {
        unexplained: { count: unexplained.length, firstSeq: unexplained[0]?.seq },
      }),
    },
    verified,
  )
}

/** Compares a proof of inclusion: the path in the tree over all records. */
export async function agreeOnProof(session: Session, { agent, pick, by }: ReadOf<'proof'>): Promise<void> {
  const chain = session.world.chains.get(agent) ?? []
  const record = chain[pick % chain.length]
  const route = `GET /v1/strand/proof?agent=${agent}&hash=${record?.hash ?? 'ef'.repeat(32)}`
  const answer = await checkedCall(session.server, route, { key: session.actor(by).key })
  if (refusedFor(session, { agent, by }, { route, answer }) || record === undefined) return
  const leaves = chain.map(({ hash }) => hash)
  const root = rootOf(leaves)
  const { checkpoint, ...proof } = answer.body
  const { hash, seq } = record
  const size = chain.length
  agree(route, { agent, hash, seq, tree_size: size, root, path: pathOf(leaves, seq) }, proof)
  const origin = `strandfast/${chain[0]?.hash}`
  agree(
    `${route}: checkpoint`,
    { origin, size, rootHex: root },
    verifyCheckpoint(checkpoint, viewOf(chain).key),
  )
}

/** Compares a stream, which replays the records since a moment and continues after any of its events. */
export async function agreeOnStream(session: Session, read: ReadOf<'stream'>): Promise<void> {
  const { world } = session
  const agents = read.agents.filter((agent) => world.chains.has(agent)).slice(0, read.one ? 1 : undefined)
  if (agents.length === 0) return
  const since = momentOf(world, read.since)
  const path = read.one ? `/v1/agents/${agents[0]}/stream` : '/v1/stream'
  const query = new URLSearchParams({
    ...(!read.one && { agents: agents.join(',') }),
    ...(read.filter !== undefined && { filter: read.filter }),
  })
  const all = await replayed(session, `${path}?${query}&since=${encodeURIComponent(since.text)}`)
  for (const agent of agents) {
    const chain = chainOf(world, agent)
    const { erased } = viewOf(chain)
    const expected = written(chain)
      .filter(({ hash, hlc }) => !erased.has(hash) && hlc >= since.first)
      .filter(({ body }) => read.filter === undefined || Object.hasOwn(body, read.filter))
      .map((record) => eventOf(agent, record))
    agree(
      `${path}?${query} since ${since.text} of ${agent}`,
      expected,
      all.map(({ data }) => data).filter((data) => data.agent === agent),
    )
  }
  const index = read.pick % Math.max(1, all.length)
  const id = all[index]?.id
  if (id === undefined) return
  const rest = await replayed(session, `${path}?${query}`, id)
  const ids = (events: readonly TestEvent[]) => events.map(({ data }) => data.record_id).sort()
  agree(`${path}?${query} after ${id}`, ids(all.slice(index + 1)), ids(rest))
}

/** The record events of a stream until it has caught up. */
async function replayed(session: Session, path: string, lastEventId?: string): Promise<TestEvent[]> {
  const headers: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  const stream = await openStream(session.server, path, { headers })
  await stream.until(isCaughtUp)
  stream.close()
  await stream.ended
  return stream.events.filter(({ event }) => event === 'record')
}
