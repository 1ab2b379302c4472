import { openStream, type TestEvent, type TestStream } from '../support/http/events.js'
import type { TestServer } from '../support/server/server.js'
import { msOf } from './answers.js'
import { agree } from './matching.js'
import { viewOf, written, type ChainRecord } from './strand.js'
import type { World } from './world.js'

/** The stream event of a record. */
export function eventOf(agent: string, { hash, prev, seq, hlc, type, body }: ChainRecord): unknown {
  return {
    record_id: hash,
    payload: body,
    agent,
    seq,
    type,
    timestamp_hlc: hlc,
    timestamp_ms: msOf(hlc),
    content_hash: hash,
    parent_hash: prev,
  }
}

/**
 * A stream of all agents from the first record on, which is opened again after its last event at each start
 * of the server.
 */
export class Subscriber {
  readonly #seen: TestEvent[] = []
  #stream: TestStream | undefined

  /** Continues with a restarted server, once the stream of the previous one has ended. */
  async open(server: TestServer): Promise<void> {
    if (this.#stream !== undefined) {
      await this.#stream.ended
      this.#seen.push(...this.#stream.events)
    }
    const last = this.#seen.at(-1)?.id
    const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': last }
    this.#stream = await openStream(server, '/v1/stream?since=0', { headers })
  }

  /**
   * Checks that every record was received once and in order, once the last record of each chain has arrived.
   * Records that have been erased need not have been received.
   */
  async agree(world: World): Promise<void> {
    const stream = this.#stream
    if (stream === undefined) throw new Error('Expected a stream')
    const lasts = [...world.chains.values()].map((chain) => chain.at(-1)?.hash)
    const recordsOf = (events: readonly TestEvent[]) =>
      [...this.#seen, ...events].filter(({ event }) => event === 'record').map(({ data }) => data)
    await stream.until((events) => {
      const ids = new Set(recordsOf(events).map(({ record_id: id }) => id))
      return lasts.every((hash) => ids.has(hash))
    })
    stream.close()
    await stream.ended
    const all = recordsOf(stream.events)
    for (const [agent, chain] of world.chains) {
      const { erased } = viewOf(chain)
      const own = all.filter((one) => one.agent === agent)
      const ids = new Set(own.map(({ record_id: id }) => id))
      const expected = written(chain).filter(({ hash }) => !erased.has(hash) || ids.has(hash))
      agree(
        `The stream events of ${agent}`,
        expected.map((record) => eventOf(agent, record)),
        own,
      )
    }
  }
}
