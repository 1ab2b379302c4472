import type { CommandOf } from '../../src/protocol/messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import { auditStrand, appendAudit } from '../shard/audit.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { Decision, ShardState } from '../shard/state.js'
import { lastReported, reported } from '../store/tables/meta.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Records of the server's own operations. */
export const auditCommands = {
  writes: {
    auditOpen: { decide: auditOpen },
    auditAppend: { decide: auditAppend },
  },
} satisfies FeatureCommands

/** Creates the server's audit strand if it does not exist; 503 clock_skew. */
function auditOpen(state: ShardState, _command: CommandOf<'auditOpen'>, group: CommitGroup): Decision {
  const agent = auditStrand(state, group)
  return 'code' in agent ? agent : () => ({ kind: 'done' })
}

/**
 * Appends a record to the server's audit strand, with `changesOnly` only if its content has changed; 503
 * clock_skew.
 */
function auditAppend(
  state: ShardState,
  { entry, changesOnly }: CommandOf<'auditAppend'>,
  group: CommitGroup,
): Decision {
  const content = canonicalJson(entry.body)
  const before =
    group.changes.find(reported)?.get(entry.type) ?? lastReported(state.store.environment, entry.type)
  if (changesOnly && before === content) return () => ({ kind: 'audited' })
  const record = appendAudit(state, entry, group)
  if ('code' in record) return record
  if (changesOnly) group.changes.of(reported).set(entry.type, content)
  return () => ({ kind: 'audited', seq: record.seq })
}
