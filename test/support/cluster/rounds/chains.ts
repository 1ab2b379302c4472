import { setTimeout as pause } from 'node:timers/promises'
import type { Strand } from '../../../../scripts/crash-loop/strands.mjs'
import { posting } from './cluster-client.js'
import { type Entry, type LoadParts, REST_MS } from './writes.js'

/** Agents to whose heads several clients write. */
export const chainAgents = ['chain-0', 'chain-1']

/** A refusal of If-Match: the named head, and the current head in the answer. */
interface Moved {
  agent: string
  named: string
  current: string
  /** The known length of the strand when the request was sent. */
  floor: number
}

/** Clients that write to the head they know, and may lose the race. */
export class Chains {
  readonly #moved: Moved[] = []
  #writes = 0

  /** Two clients race for the head of each agent. */
  async run(parts: LoadParts): Promise<void> {
    const clients = chainAgents.flatMap((agent) => [agent, agent])
    await Promise.all(clients.map((agent) => this.#writeOn(parts, agent)))
  }

  /** Checks that the heads in refusals were heads of their strands, after the named ones. */
  check(strands: ReadonlyMap<string, Strand>): string[] {
    const positions = new Map(
      chainAgents.map((agent) => [
        agent,
        new Map(strands.get(agent)?.records.map(({ hash }, seq) => [hash, seq])),
      ]),
    )
    return this.#moved.splice(0).flatMap(({ agent, named, current, floor }) => {
      const [namedAt, currentAt] = [positions.get(agent)?.get(named), positions.get(agent)?.get(current)]
      if (namedAt !== undefined && currentAt !== undefined && currentAt > namedAt && currentAt >= floor)
        return []
      return [
        `If-Match of ${agent} was refused for ${named} (${namedAt}), with the current head ${current} (${currentAt}, ${floor})`,
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
      const id = `${prefix}-chain-${(this.#writes += 1)}`
      const request = posting(
        `/v1/agents/${agent}/records`,
        { data: { op: id, n: 0 } },
        {
          headers: { 'if-match': `"${named}"`, 'idempotency-key': id },
        },
      )
      const { method, path, headers = {}, body = '' } = request
      const sent = { method, path, headers, body }
      const floorBefore = known.at(agent)
      const { status, body: answered } = await client.insist(request)
      if (status === 201) {
        const entry: Entry = {
          operation: { id, kind: 'write', keyed: true, agents: [agent], request: sent },
          answer: { status, body: answered },
        }
        journal.push(entry)
        known.wrote(`write ${id}`, { agent, seq: answered.seq, floor: floorBefore })
        if (answered.parent_hash !== named || answered.seq !== seq + 1)
          known.breaches.push(
            `${id} was to follow ${named} (${seq}), and follows ${answered.parent_hash} as ${answered.seq}`,
          )
      } else if (status === 412)
        this.#moved.push({ agent, named, current: answered.chain_head, floor: floorBefore })
      else known.breaches.push(`${id} was answered ${status} ${answered?.code}`)
      await pause(REST_MS)
    }
  }
}
