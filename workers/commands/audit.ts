import type { CommandOf } from '../../src/protocol/messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import { auditStrand, tellAudit } from '../shard/audit.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { Decision, ShardState } from '../shard/state.js'
import { lastReported } from '../store/tables/meta.js'

/** Makes the server's audit strand if it does not exist; 503 clock_skew. */
export function auditOpen(state: ShardState, group: CommitGroup): Decision {
  const agent = auditStrand(state, group)
  return 'code' in agent ? agent : () => ({ kind: 'done' })
}

/** Appends a record to the server's audit strand; 503 clock_skew. */
export function auditAppend(
  state: ShardState,
  { entry, changesOnly }: CommandOf<'auditAppend'>,
  group: CommitGroup,
): Decision {
  const told = canonicalJson(entry.body)
  const before = group.lastReported.get(entry.type) ?? lastReported(state.store.environment, entry.type)
  if (changesOnly && before === told) return () => ({ kind: 'audited' })
  const record = tellAudit(state, entry, group)
  if ('code' in record) return record
  if (changesOnly) group.lastReported.set(entry.type, told)
  return () => ({ kind: 'audited', seq: record.seq })
}
