import { setTimeout as pause } from 'node:timers/promises'
import type { Strand } from '../../../../scripts/crash-loop/strands.mjs'
import { posting } from './cluster-client.js'
import { type Entry, type LoadParts, REST_MS } from './writes.js'

/** Agents onto whose heads several clients write. */
export const chainAgents = ['chain-0', 'chain-1']

/** A refusal of If-Match: the head that was named, and the one that the answer names. */
interface Moved {
  agent: string
  named: string
  told: string
  /** What was known of the strand when it was asked. */
  floor: number
}

/** Clients that write onto the head they know, and may come second. */
export class Chains {
  readonly #moved: Moved[] = []
  #made = 0

  /** Two clients each race for the heads of the agents. */
  async run(parts: LoadParts): Promise<void> {
    const clients = chainAgents.flatMap((agent) => [agent, agent])
    await Promise.all(clients.map((agent) => this.#writeOn(parts, agent)))
  }

  /** The heads that refusals named were ends of their strands, behind those that had been named. */
  check(strands: ReadonlyMap<string, Strand>): string[] {
    const places = new Map(
      chainAgents.map((agent) => [
        agent,
        new Map(strands.get(agent)?.records.map(({ hash }, seq) => [hash, seq])),
      ]),
    )
    return this.#moved.splice(0).flatMap(({ agent, named, told, floor }) => {
      const [namedAt, toldAt] = [places.get(agent)?.get(named), places.get(agent)?.get(told)]
      if (namedAt !== undefined && toldAt !== undefined && toldAt > namedAt && toldAt >= floor) return []
      return [
        `If-Match of ${agent} was refused for ${named} (${namedAt}), as the head were ${told} (${toldAt}, ${floor})`,
      ]
    })
  }

  async #writeOn(parts: LoadParts, agent: string): Promise<void> {
    const { client, known, journal, prefix, stopped } = parts
    while (!stopped()) {
      const floor = known.at(agent)
      const head = await client.insist({ method: 'GET', path: `/v1/agents/${agent}/head` })
      if (head.status !== 200) {
        known.breaches.push(`The head of ${agent} was answered ${head.status} ${head.body?.code}`)
        return
      }
      const { chain_head: named, seq } = head.body
      known.read('A head', { agent, seq, floor })
      const id = `${prefix}-chain-${(this.#made += 1)}`
      const ask = posting(
        `/v1/agents/${agent}/records`,
        { data: { op: id, n: 0 } },
        {
          headers: { 'if-match': `"${named}"`, 'idempotency-key': id },
        },
      )
      const { method, path, headers = {}, body = '' } = ask
      const request = { method, path, headers, body }
      const floorBefore = known.at(agent)
      const { status, body: told } = await client.insist(ask)
      if (status === 201) {
        const entry: Entry = {
          operation: { id, kind: 'write', keyed: true, agents: [agent], request },
          answer: { status, body: told },
        }
        journal.push(entry)
        known.wrote(`write ${id}`, { agent, seq: told.seq, floor: floorBefore })
        if (told.parent_hash !== named || told.seq !== seq + 1)
          known.breaches.push(
            `${id} was to follow ${named} (${seq}), and follows ${told.parent_hash} as ${told.seq}`,
          )
      } else if (status === 412) this.#moved.push({ agent, named, told: told.chain_head, floor: floorBefore })
      else known.breaches.push(`${id} was answered ${status} ${told?.code}`)
      await pause(REST_MS)
    }
  }
}
