import { auditAgent } from '../strand/organism-id.js'
import type { Logger } from '../base/log.js'
import type { Shards } from '../dispatch/links/shards.js'
import type { AuditEntry, LicenseAudit } from '../protocol/audit-messages.js'
import { acceptedLosses, nameOfLoss, removeAcceptedLosses } from '../data/accepted-losses.js'
import type { DataDirectory } from '../data/directory.js'
import { readRestoredMarker, removeRestoredMarker } from '../data/restored-marker.js'

/** Dependencies of the records written at a start. */
interface StartRecords {
  parts: { shards: Shards }
  directory: Pick<DataDirectory, 'path'>
  /** The license in force; absent while the auth add-on is off. */
  license: LicenseAudit | undefined
  log: Logger
}

/**
 * Creates the server's audit strand if there is none, and records what has changed since the last start: a
 * restore of the directory, accepted losses of the cluster's log, and another license (docs/FORMAT.md, The
 * audit strand). If that fails, for example because the clock was set back, the next start does it.
 */
export async function recordStart({ parts, directory, license, log }: StartRecords): Promise<void> {
  const { shards } = parts
  const { path } = directory
  const opened = await shards.request(auditAgent, { kind: 'auditOpen', agent: auditAgent, options: {} })
  const marker = readRestoredMarker(path)
  let ok = opened.kind === 'done'
  if (ok && marker !== undefined) {
    const { id, ...body } = marker
    const key = { caller: 'server', key: `restored ${id}` }
    const entry: AuditEntry = { type: 'sys/restored', body }
    ok = (await appended(shards, { entry, changesOnly: false, key })) !== undefined
    if (ok) removeRestoredMarker(path)
  }
  const losses = acceptedLosses(path)
  for (const body of losses) {
    const key = { caller: 'server', key: `loss ${nameOfLoss(body)}` }
    const entry: AuditEntry = { type: 'sys/loss_accepted', body }
    ok &&= (await appended(shards, { entry, changesOnly: false, key })) !== undefined
  }
  if (ok && losses.length > 0) removeAcceptedLosses(path)
  if (ok && license !== undefined) {
    const entry: AuditEntry = { type: 'sys/license', body: license }
    ok = (await appended(shards, { entry, changesOnly: true })) !== undefined
  }
  if (!ok) log.warn('could not write to the audit strand: the next start records the changes')
}

/** Appends a record to the audit strand. @returns its seq; undefined if that is not possible now */
export async function appendAudit(shards: Shards, entry: AuditEntry): Promise<number | undefined> {
  return (await appended(shards, { entry, changesOnly: false }))?.seq
}

async function appended(
  shards: Shards,
  { entry, changesOnly, key }: Append,
): Promise<{ seq?: number } | undefined> {
  const options = key === undefined ? {} : { idempotency: key }
  const command = { kind: 'auditAppend', agent: auditAgent, entry, changesOnly, options } as const
  const outcome = await shards.request(auditAgent, command)
  return outcome.kind === 'audited' ? outcome : undefined
}

interface Append {
  entry: AuditEntry
  changesOnly: boolean
  key?: { caller: string; key: string }
}
