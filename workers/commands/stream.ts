import { limits } from '../../src/base/limits.js'
import type { CommandOf, Outcome, StreamEvent } from '../../src/protocol/messages.js'
import { compareHlc, formatHlc, type Hlc } from '../../src/strand/hlc.js'
import { isSystemType } from '../../src/strand/record-type.js'
import { streamEventData } from '../../src/wire/render.js'
import { noSuchAgent, refused, type ShardState } from '../shard-state.js'
import type { StoredRecord } from '../store/record-codec.js'
import { blocksAfter, recordsFrom, seqAtOrAfter } from '../store/records.js'

/** The event that streams tell of a record. */
export function streamEvent(agent: string, record: StoredRecord): StreamEvent {
  return { agent, seq: record.seq, hlc: formatHlc(record.hlc), data: streamEventData(agent, record) }
}

/** Whether streams show a record: not the server's own, and nothing of which the body is gone. */
export function isStreamed(record: StoredRecord): boolean {
  return !isSystemType(record.type) && record.erased !== true
}

/** One page of a strand for a stream that catches up. */
export function streamPage(state: ShardState, command: CommandOf<'streamPage'>): Outcome {
  const agent = state.store.agents.find(command.agent)
  if (agent === undefined) return refused(noSuchAgent(command.agent))
  const { environment } = state.store
  const fromSeq =
    command.since === undefined ? command.fromSeq : seqAtOrAfter(environment, agent.no, command.since)
  const page = new Page(command.limit)
  let nextSeq = fromSeq
  for (const record of recordsFrom(environment, agent.no, { fromSeq, order: 'asc' })) {
    if (page.full) return page.outcome({ nextSeq, end: false })
    page.look(agent.name, record)
    nextSeq = record.seq + 1
  }
  return page.outcome({ nextSeq: Math.max(nextSeq, fromSeq), end: true })
}

/** One page of the whole shard in commit order, for a global stream that catches up. */
export function logPage(state: ShardState, command: CommandOf<'logPage'>): Outcome {
  const only = command.agents === undefined ? undefined : new Set(command.agents)
  const page = new Page(command.limit)
  const { environment, agents } = state.store
  for (const record of blocksAfter(environment, command.after)) {
    if (page.full) return page.outcome({ nextSeq: 0, end: false })
    const name = agents.nameOf(record.agentNo)
    if (only === undefined || only.has(name)) page.look(name, record)
    else page.pass(record)
  }
  return page.outcome({ nextSeq: 0, end: true })
}

/** Tells of the commits of an agent from now on, or no more. */
export function watch(state: ShardState, command: CommandOf<'watch'>): Outcome {
  if (command.on) state.watched.add(command.agent)
  else state.watched.delete(command.agent)
  return { kind: 'watching', reached: state.store.lastHlc }
}

/** Events of one page, bounded in rows, bytes and records looked at. */
class Page {
  readonly #limit: number
  readonly #events: StreamEvent[] = []
  #looked = 0
  #bytes = 0
  #reached: Hlc = { ms: 0, counter: 0 }

  constructor(limit: number) {
    this.#limit = limit
  }

  get full(): boolean {
    return (
      this.#events.length >= this.#limit ||
      this.#looked >= limits.pageScanRecordsMax ||
      this.#bytes >= limits.streamBufferBytes
    )
  }

  look(agent: string, record: StoredRecord): void {
    this.pass(record)
    if (!isStreamed(record)) return
    const event = streamEvent(agent, record)
    this.#events.push(event)
    this.#bytes += event.data.length
  }

  pass(record: StoredRecord): void {
    this.#looked++
    if (compareHlc(record.hlc, this.#reached) > 0) this.#reached = record.hlc
  }

  outcome({ nextSeq, end }: { nextSeq: number; end: boolean }): Outcome {
    return { kind: 'page', events: this.#events, nextSeq, reached: this.#reached, end }
  }
}
