import type { ServiceClient } from '../../client/index.js'
import { describeEvent } from '../parts/audit-events.js'
import { counted, keyDigits } from '../parts/format.js'
import { fails, holds, type Verdict } from '../parts/result.js'
import { proveRecord } from '../parts/proof/prove-record.js'
import { type RecordRow, readStrandPart, rowOf } from '../parts/records/record-row.js'

/** The parameters of a verification. */
interface Verifying {
  service: ServiceClient
  agent: string
  rows: readonly RecordRow[]
  signal: AbortSignal
  onProgress: (done: number) => void
}

/**
 * Proves listed records one after another, and checks that each matches its row in the list.
 * @throws errors of the service; the signal's reason
 */
export async function verifyRows({ service, agent, rows, signal, onProgress }: Verifying): Promise<Verdict> {
  const handle = service.agent(agent)
  const { strand } = await handle.status({ signal })
  let publicKey = ''
  let isKeyTrusted = true
  for (const [done, row] of rows.entries()) {
    const { seq } = row
    const not = (why: string): Verdict => fails(`record ${seq} of ${agent}: ${why}`)
    const {
      records: [record],
    } = await readStrandPart(service, agent, { fromSeq: seq, toSeq: seq, signal })
    if (record === undefined) return not('the server did not send it')
    // The current key signs the checkpoint, and can change during the loop.
    publicKey = (await handle.status({ signal })).public_key
    const fetchProof = (hash: string) => service.proof(agent, hash, { signal })
    const verdict = await proveRecord({ agent, seq, strand, record, fetchProof, publicKey }, () => undefined)
    if (verdict.outcome === 'failed') return verdict
    isKeyTrusted &&= verdict.outcome === 'verified'
    const signed = rowOf(record)
    if (signed === undefined || textOf(signed) !== textOf(row))
      return not('the record does not match its row in the list')
    onProgress(done + 1)
  }
  return holds(
    `each of the ${counted(rows.length, 'record')} listed is unchanged and on the strand of ${agent}, under ` +
      `the checkpoint signed with key …${keyDigits(publicKey)}`,
    isKeyTrusted,
  )
}

function textOf(row: RecordRow): string {
  return JSON.stringify([row.seq, row.type, row.ms, describeEvent(row)])
}
