import type { ServiceClient } from '../../client/index.js'
import { toldBy } from '../parts/audit-events.js'
import { counted, keyDigits } from '../parts/format.js'
import type { Verdict } from '../parts/result.js'
import { proveRecord } from '../parts/proof/prove-record.js'
import { type RecordRow, readStrandPart, rowOf } from '../parts/records/record-row.js'

/** What is verified. */
interface Verifying {
  service: ServiceClient
  agent: string
  /** Records as they are listed. */
  rows: readonly RecordRow[]
  signal: AbortSignal
  onProgress: (done: number) => void
}

/**
 * Proves listed records one after another, as a record's drawer does, and that each says what the list says.
 * @throws what the service answers; the signal's reason
 */
export async function verifyRows({ service, agent, rows, signal, onProgress }: Verifying): Promise<Verdict> {
  const handle = service.agent(agent)
  const { strand } = await handle.status({ signal })
  let publicKey = ''
  for (const [done, row] of rows.entries()) {
    const { seq } = row
    const not = (why: string): Verdict => ({
      ok: false,
      text: `Not verified: record ${seq} of ${agent}: ${why}`,
    })
    const {
      records: [record],
    } = await readStrandPart(service, agent, { fromSeq: seq, toSeq: seq, signal })
    if (record === undefined) return not('the server did not send it')
    // The key in force signs the checkpoint, and can change meanwhile.
    publicKey = (await handle.status({ signal })).public_key
    const askForPath = (hash: string) => service.proof(agent, hash, { signal })
    const verdict = await proveRecord({ agent, seq, strand, record, askForPath, publicKey }, () => undefined)
    if (!verdict.ok) return verdict
    const signed = rowOf(record)
    if (signed === undefined || textOf(signed) !== textOf(row)) return not('the list shows it in other words')
    onProgress(done + 1)
  }
  return {
    ok: true,
    text:
      `Verified: each of the ${counted(rows.length, 'record')} listed is on the strand of ${agent}, unchanged, under ` +
      `the checkpoint signed by key …${keyDigits(publicKey)}`,
  }
}

/** What the list shows of a record. */
function textOf(row: RecordRow): string {
  return JSON.stringify([row.seq, row.type, row.ms, toldBy(row)])
}
