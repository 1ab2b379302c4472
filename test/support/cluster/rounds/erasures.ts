import { setTimeout as pause } from 'node:timers/promises'
import { posting } from './cluster-client.js'
import { type LoadParts, REST_MS } from './writes.js'

/** The agent whose records are erased. */
export const erasedAgent = 'erased'

/** Text in the bodies that are erased, and nowhere else. */
export const erasedText = 'bytes-that-are-to-be-erased'

/** Writes records and erases them. At the end none of their bodies must be left. */
export async function erasures({ client, known, prefix, stopped }: LoadParts): Promise<void> {
  for (let n = 0; !stopped(); n++) {
    const key = (what: string) => ({ headers: { 'idempotency-key': `${prefix}-${what}-${n}` } })
    const path = `/v1/agents/${erasedAgent}/records`
    const text = `${erasedText} ${prefix} ${n}`
    const written = await client.insist(posting(path, { data: { text } }, key('written')))
    const { content_hash: hash, seq } = written.body
    const erased = await client.insist(posting(`${path}/${hash}/erase`, {}, key('erased')))
    if (written.status !== 201 || erased.status !== 200) {
      known.breaches.push(
        `An erasure was answered ${written.status} and ${erased.status} ${erased.body?.code}`,
      )
      return
    }
    known.saw(erasedAgent, seq)
    known.erased.push({ agent: erasedAgent, hash })
    await pause(REST_MS)
  }
}
