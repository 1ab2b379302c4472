import { type ReadRecord, bodyMembers } from '../../../proof/record.js'
import type { RecordRow } from '../../parts/records/record-row.js'

/** What the signed records of the server say of a strand at their last one (docs/FORMAT.md, Mutations). */
export interface History {
  zone: unknown
  /** Seqs of the records that are deleted. */
  deleted: ReadonlySet<unknown>
}

/** Reads the history of a strand; undefined where it does not begin at genesis, or a record of it is withheld. */
export function historyOf(records: readonly ReadRecord[]): History | undefined {
  if (records[0]?.header?.seq !== 0) return undefined
  let zone: unknown
  const deleted = new Set<unknown>()
  for (const { header, content } of records) {
    if (header?.type.startsWith('sys/') !== true) continue
    if (content === undefined) return undefined
    const body = bodyMembers(content)
    if (header.type === 'sys/genesis' || header.type === 'sys/zone') zone = body['zone']
    else if (header.type === 'sys/tombstone') deleted.add(body['target_seq'])
    else if (header.type === 'sys/restore') deleted.delete(body['target_seq'])
  }
  return { zone, deleted }
}

/** What the server says otherwise than the signed records do; undefined where they agree. */
export function historyFault(
  { zone, deleted }: History,
  said: { zone: string | null; rows: readonly RecordRow[] },
): string | undefined {
  if (said.zone !== zone) return `the server names the zone ${said.zone}, the records name ${String(zone)}`
  const other = said.rows.find(
    ({ seq, state }) =>
      (state === 'deleted' && !deleted.has(seq)) || (state === 'active' && deleted.has(seq)),
  )
  if (other === undefined) return undefined
  const is = other.state === 'deleted' ? 'was' : 'was not'
  return `the server says that record ${other.seq} ${is} deleted then, and the records say otherwise`
}
