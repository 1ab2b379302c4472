import { checkedCall } from '../http/answers.js'
import type { TestServer } from './server.js'

export const auditStrand = 'server::audit'

/** A record of the audit strand by its type and body. */
export interface AuditRecord {
  type: string
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any
}

/** The records of the audit strand, without its genesis. */
export async function auditRecords(on: TestServer): Promise<AuditRecord[]> {
  const { records } = (
    await checkedCall(on, `POST /v1/agents/${auditStrand}/query`, {
      body: { type: 'latest', order: 'asc', limit: 1_000, types: ['sys/*'] },
    })
  ).body
  return records
    .map(({ type, payload }: { type: string; payload: unknown }) => ({ type, body: payload }))
    .filter(({ type }: AuditRecord) => type !== 'sys/genesis')
}
