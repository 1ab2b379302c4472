import type { StreamEvent } from '../../src/protocol/stream-messages.js'
import type { Notice } from '../../src/protocol/notices.js'
import { isStreamed, streamEvent } from './stream-event.js'
import type { ShardStore } from '../store/shard-store.js'
import type { CommitGroup } from './commit-group.js'
import type { Watched } from './front-frames.js'
import { mutations } from '../store/tables/mutations.js'
import { erasures } from '../store/tables/erasures.js'
import { auth } from '../store/tables/auth-table.js'
import { apiKeys } from '../store/tables/api-keys.js'

/** The changes of a commit group to data that fronts cache. */
export function noticesOf(group: CommitGroup, store: ShardStore): Notice[] {
  const notices: Notice[] = []
  const policiesOf = [...group.agentChanges].flatMap(([name, { policies }]) =>
    policies === undefined ? [] : [name],
  )
  if (policiesOf.length > 0) notices.push({ kind: 'policiesChanged', agents: policiesOf })
  const erased = group.changes.find(erasures)?.all ?? []
  if (erased.length > 0) {
    const agents = erased.map(({ agentNo }) => store.agents.nameOf(agentNo))
    notices.push({ kind: 'erased', agents: [...new Set(agents)] })
  }
  const changed = group.changes.find(mutations)?.changed ?? []
  if (changed.length > 0) notices.push({ kind: 'recordsChanged', hashes: changed })
  const keys = group.changes.find(apiKeys)?.shown
  if (keys !== undefined && keys.created.length + keys.removed.length > 0)
    notices.push({ kind: 'apiKeysChanged', changes: keys })
  const { revocations = [], rotated = [] } = group.changes.find(auth) ?? {}
  if (revocations.length > 0) notices.push({ kind: 'ended', revocations })
  if (rotated.length > 0) notices.push({ kind: 'rotated', namespaces: rotated })
  if (group.imported.length > 0) {
    const agents = group.imported.map(({ agent }) => agent.name)
    notices.push({ kind: 'imported', agents: [...new Set(agents)] })
  }
  return notices
}

/** The events of a commit group's records that fronts watch, in commit order. */
export function eventsOf(group: CommitGroup, watched: Watched): StreamEvent[] {
  if (watched.isEmpty) return []
  const all = watched.has('')
  return group.records
    .filter((record) => (all || watched.has(record.agent.name)) && isStreamed(record))
    .map((record) => streamEvent(record.agent.name, record))
}
