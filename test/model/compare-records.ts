import { verifyAsOf, type AsOfResponse } from '../../src/client/index.js'
import { verifyCheckpoint } from '../../src/proof/node/compare-checkpoint.js'
import { checkedCall } from '../support/http/answers.js'
import { recordView } from './answers.js'
import { agree, anything } from './matching.js'
import { rootOf } from './merkle.js'
import { momentOf } from './moments.js'
import { pagesOf, refusedFor } from './pages.js'
import type { ReadOf, Where } from './reads.js'
import type { Session } from './session.js'
import { chainAt, isSystem, viewOf, type ChainRecord } from './strand.js'
import { chainOf } from './world.js'

const nothing = new Set<string>()

/**
 * The records that a query or a read as of a moment returns; `past` is the part of the chain at that moment.
 */
function shownOf(
  chain: readonly ChainRecord[],
  past: readonly ChainRecord[],
  select: (record: ChainRecord) => boolean,
): unknown[] {
  if (past.length === 0) return []
  const { deleted } = viewOf(past)
  const { erased } = viewOf(chain)
  return past
    .filter((record) => !deleted.has(record.hash) && !erased.has(record.hash) && select(record))
    .map((record) => recordView(record, { deleted: nothing, erased: nothing }))
}

/** Compares all pages of a query, which must return the strand as of the first page. */
export async function agreeOnQuery(session: Session, read: ReadOf<'query'>): Promise<void> {
  const { agent, by, type, limit, order, where, types } = read
  const range = type === 'time_range'
  const from = range && read.from !== undefined ? momentOf(session.world, read.from) : undefined
  const to = range && read.to !== undefined ? momentOf(session.world, read.to) : undefined
  const body = {
    type,
    order,
    where,
    types,
    ...(from !== undefined && { from_ts: momentBody(from.text) }),
    ...(to !== undefined && { to_ts: momentBody(to.text) }),
  }
  const route = `POST /v1/agents/${agent}/query`
  const { key } = session.actor(by)
  const first = await checkedCall(session.server, route, { key, body })
  if (refusedFor(session, { agent, by }, { route, answer: first })) return
  const chain = chainOf(session.world, agent)
  const past = to === undefined ? chain : chainAt(chain, to.last)
  const expected = shownOf(
    chain,
    past,
    (record) =>
      record.hlc >= (from?.first ?? '') &&
      (types === undefined ? !isSystem(record.type) : types.some((one) => named(record.type, one))) &&
      (where ?? []).every((condition) => holds(record.body, condition)),
  )
  if ((order ?? (range ? 'asc' : 'desc')) === 'desc') expected.reverse()
  let pages = 0
  const rows = await pagesOf(limit ?? 20, async ({ cursor }) => {
    if (pages++ === 1 && read.between) await writeBetween(session, agent)
    const query = { ...body, ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) }
    const page = await checkedCall(session.server, route, { key, body: query })
    return { rows: page.body.records, next: page.body.next_cursor }
  })
  agree(`${route} ${JSON.stringify({ ...body, limit })}`, expected, rows)
}

/** A moment in a body: a number if it is in milliseconds. */
function momentBody(text: string): string | number {
  return /^\d+$/.test(text) ? Number(text) : text
}

async function writeBetween(session: Session, agent: string): Promise<void> {
  const by = session.actor('root')
  const item = { data: { n: session.nextNumber(), tag: 'x', v: 1 } }
  await session.perform({ request: { kind: 'write', agent, via: 'agent', item }, by })
  const victim = chainOf(session.world, agent).find(({ type }) => !isSystem(type))
  if (victim === undefined) return
  const mutation = { action: 'delete', target: victim.hash, target_seq: victim.seq } as const
  await session.perform({ request: { kind: 'mutate', agent, mutation }, by })
}

function named(type: string, pattern: string): boolean {
  return pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern
}

/** Conditions compare values of one type; a missing field matches only `exists` false. */
function holds(body: Record<string, unknown>, { field, op, value }: Where): boolean {
  const found = body[field]
  if (op === 'exists') return (found !== undefined) === (value !== false)
  if (found === undefined) return false
  if (op === 'eq') return found === value
  if (op === 'in') return Array.isArray(value) && value.includes(found)
  if (kindOf(found) !== kindOf(value)) return false
  if (op === 'ne') return found !== value
  if (typeof found === 'number' && typeof value === 'number') return ordered(found - value, op)
  if (typeof found === 'string' && typeof value === 'string') {
    if (found === value) return ordered(0, op)
    return ordered(found < value ? -1 : 1, op)
  }
  return false
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : typeof value
}

function ordered(difference: number, op: string): boolean {
  if (difference === 0) return op === 'lte' || op === 'gte'
  return difference < 0 ? op === 'lt' || op === 'lte' : op === 'gt' || op === 'gte'
}

/** Compares a strand as of a moment: records, head, zone, and a tree head that verifies. */
export async function agreeOnAsOf(session: Session, read: ReadOf<'asOf'>): Promise<void> {
  const { agent, by, limit } = read
  const { text: ts, last } = momentOf(session.world, read.moment)
  const { key } = session.actor(by)
  const path = (more: Record<string, string>) =>
    `GET /v1/strand/as-of?${new URLSearchParams({ agent, ts, ...more })}`
  const first = await checkedCall(session.server, path({}), { key })
  if (refusedFor(session, { agent, by }, { route: path({}), answer: first })) return
  const chain = chainOf(session.world, agent)
  const past = chainAt(chain, last)
  const end = past.at(-1)
  const expected = {
    ts,
    chain_head: end?.hash ?? null,
    record_count: Math.max(0, past.length - 1),
    zone: past.length === 0 ? null : viewOf(past).zone,
  }
  const rows = await pagesOf(limit, async (more) => {
    const { body } = await checkedCall(session.server, path(more), { key })
    const { records, next_cursor: next, checkpoint, ...rest } = body
    agree(path(more), expected, rest)
    agreeOnCheckpoint(path(more), { chain, past }, checkpoint)
    if (more['cursor'] === undefined && past.length > 0 && viewOf(past).key !== viewOf(chain).key) {
      await agreeOnRotations(session, { agent, past }, body)
    }
    return { rows: records, next }
  })
  agree(
    path({}),
    shownOf(chain, past, ({ type }) => !isSystem(type)),
    rows,
  )
}

/** Compares the tree head of the past, which is signed by the current key. */
function agreeOnCheckpoint(
  about: string,
  { chain, past }: { chain: readonly ChainRecord[]; past: readonly ChainRecord[] },
  checkpoint: string | null,
): void {
  if (past.length === 0) {
    agree(`${about}: checkpoint`, null, checkpoint)
    return
  }
  const origin = `strandfast/${chain[0]?.hash}`
  const expected = { origin, size: past.length, rootHex: rootOf(past.map(({ hash }) => hash)) }
  agree(`${about}: checkpoint`, expected, verifyCheckpoint(checkpoint ?? '', viewOf(chain).key))
}

/** Checks that an export leads from the key of the past to the key that signed. */
async function agreeOnRotations(
  session: Session,
  { agent, past }: { agent: string; past: readonly ChainRecord[] },
  answer: AsOfResponse,
): Promise<void> {
  const route = `GET /v1/strand/export?agent=${agent}`
  const { text: strandExport } = await checkedCall(session.server, route)
  const found = await verifyAsOf(answer, { publicKey: past[0]?.key ?? '', strandExport })
  agree(
    `${route}: verified as of ${answer.ts}`,
    { ok: true, size: past.length, strand: past[0]?.hash, rootHex: anything },
    found,
  )
}
