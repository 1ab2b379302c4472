import { limits } from '../../src/base/limits.js'
import type { CommandOf, Outcome, StreamEvent } from '../../src/protocol/messages.js'
import { shardOf } from '../../src/base/placement.js'
import { compareHlc, formatHlc, laterHlc, type Hlc } from '../../src/strand/hlc.js'
import { isBehind, tieOf } from '../../src/strand/log-place.js'
import { isSystemType } from '../../src/strand/record-type.js'
import { streamEventData } from '../../src/wire/render.js'
import { PageBudget } from '../shard/page-budget.js'
import { noSuchAgent, type ShardState } from '../shard/state.js'
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
  if (agent === undefined) return noSuchAgent(command.agent)
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

/**
 * One page of the whole shard in the order of its log, for a global stream that catches up. It ends between two readings,
 * never among the records of one.
 */
export function logPage(state: ShardState, command: CommandOf<'logPage'>): Outcome {
  const only = command.agents === undefined ? undefined : new Set(command.agents)
  const page = new Page(command.limit)
  const { environment, agents } = state.store
  for (const record of blocksAfter(environment, command.after)) {
    if (page.full && !page.endsAmong(record)) return page.outcome({ nextSeq: 0, end: false })
    const name = agents.nameOf(record.agentNo)
    const wanted = only === undefined || only.has(name)
    if (wanted && !wasSeen(name, record, command)) page.look(name, record)
    else page.pass(record)
  }
  page.passTo(state.store.lastHlc)
  return page.outcome({ nextSeq: 0, end: true })
}

/** Whether a record was told when the directory had another number of shards. */
function wasSeen(agent: string, record: StoredRecord, { seen = [] }: CommandOf<'logPage'>): boolean {
  return seen.some((places) => {
    const place = places[shardOf(agent, places.length)]
    return place !== undefined && !isBehind(record, place)
  })
}

/** Tells of the commits of an agent from now on, or no more. */
export function watch(state: ShardState, command: CommandOf<'watch'>): Outcome {
  if (command.on) state.watched.add(command.agent)
  else state.watched.delete(command.agent)
  return { kind: 'watching', reached: state.store.lastHlc }
}

/** Events of one page, bounded in rows, in bytes and in what it costs. */
class Page {
  readonly #limit: number
  readonly #events: StreamEvent[] = []
  readonly #budget = new PageBudget()
  #bytes = 0
  #reached: Hlc = { ms: 0, counter: 0 }
  /** The record that was looked at last, and its event where it has one. */
  #last: { record: StoredRecord; event?: StreamEvent } | undefined

  constructor(limit: number) {
    this.#limit = limit
  }

  get full(): boolean {
    return this.#events.length >= this.#limit || this.#bytes >= limits.streamBufferBytes || this.#budget.spent
  }

  look(agent: string, record: StoredRecord): void {
    this.pass(record)
    if (!isStreamed(record)) return
    const event = streamEvent(agent, record)
    this.#events.push(event)
    this.#bytes += event.data.length
    this.#last = { record, event }
  }

  pass(record: StoredRecord): void {
    if (this.#last?.event !== undefined && this.endsAmong(record)) {
      this.#last.event.tie = tieOf(this.#last.record)
    }
    this.#last = { record }
    this.#budget.read(record.body.length)
    this.passTo(record.hlc)
  }

  /** Nothing else lies up to that reading. */
  passTo(hlc: Hlc): void {
    this.#reached = laterHlc(this.#reached, hlc)
  }

  /** Whether a record has the reading of the one before it, which came from another shard then. */
  endsAmong({ hlc }: StoredRecord): boolean {
    return this.#last !== undefined && compareHlc(this.#last.record.hlc, hlc) === 0
  }

  outcome({ nextSeq, end }: { nextSeq: number; end: boolean }): Outcome {
    return { kind: 'page', events: this.#events, nextSeq, reached: this.#reached, end }
  }
}
