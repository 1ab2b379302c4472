import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import type { StreamEvent } from '../../src/protocol/stream-messages.js'
import { shardOf } from '../../src/strand/placement.js'
import { compareHlc, laterHlc, type Hlc } from '../../src/strand/hlc.js'
import { isAfterPosition, tieOf } from '../../src/strand/record-position.js'
import { isSelectedType } from '../../src/strand/record-type.js'
import { PageBudget } from '../mutations/row-access.js'
import { noSuchAgent, type ShardState } from '../shard/state.js'
import { isStreamed, streamEvent } from '../shard/stream-event.js'
import type { StoredRecord } from '../store/tables/record-codec.js'
import { blocksAfter, recordsFrom, seqAtOrAfter } from '../store/tables/records.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Event streams. */
export const streamCommands = {
  reads: {
    streamPage: { answer: streamPage },
    logPage: { answer: logPage },
    watch: { answer: watch },
  },
} satisfies FeatureCommands

/** A page of a strand for a stream that is catching up. */
function streamPage(state: ShardState, command: CommandOf<'streamPage'>): Outcome {
  const agent = state.store.agents.find(command.agent)
  if (agent === undefined) return noSuchAgent(command.agent)
  const { environment } = state.store
  const fromSeq =
    command.since === undefined ? command.fromSeq : seqAtOrAfter(environment, agent.no, command.since)
  const page = new Page(command)
  let nextSeq = fromSeq
  for (const record of recordsFrom(environment, agent.no, { fromSeq, order: 'asc' })) {
    if (page.full) return page.outcome({ nextSeq, end: false })
    page.look(agent.name, record)
    nextSeq = record.seq + 1
  }
  return page.outcome({ nextSeq: Math.max(nextSeq, fromSeq), end: true })
}

/**
 * A page of the whole shard in log order, for a global stream that is catching up. It never ends between two
 * records with the same clock reading.
 */
function logPage(state: ShardState, command: CommandOf<'logPage'>): Outcome {
  const only = command.agents === undefined ? undefined : new Set(command.agents)
  const page = new Page(command)
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

/** Whether a stream had sent a record before the number of shards changed. */
function wasSeen(agent: string, record: StoredRecord, { seen = [] }: CommandOf<'logPage'>): boolean {
  return seen.some((positions) => {
    const position = positions[shardOf(agent, positions.length)]
    return position !== undefined && !isAfterPosition(record, position)
  })
}

/** Starts or stops sending the commits of an agent as events. */
function watch(state: ShardState, command: CommandOf<'watch'>): Outcome {
  const { agent, on, front } = command
  state.watched.watch(front, agent, on)
  return { kind: 'watching', reached: state.store.lastHlc }
}

/** The events of a page, bounded in number, bytes and cost. */
class Page {
  readonly #limit: number
  readonly #types: readonly string[] | undefined
  readonly #events: StreamEvent[] = []
  readonly #budget = new PageBudget()
  #bytes = 0
  #reached: Hlc = { ms: 0, counter: 0 }
  /** The last record that was read, and its event if it has one. */
  #last: { record: StoredRecord; event?: StreamEvent } | undefined

  constructor({ limit, types }: { limit: number; types?: readonly string[] }) {
    this.#limit = limit
    this.#types = types
  }

  get full(): boolean {
    return this.#events.length >= this.#limit || this.#bytes >= limits.streamBufferBytes || this.#budget.spent
  }

  look(agent: string, record: StoredRecord): void {
    this.pass(record)
    if (!isStreamed(record) || !isSelectedType(record.type, this.#types)) return
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

  /** Advances the reading up to which the page is complete. */
  passTo(hlc: Hlc): void {
    this.#reached = laterHlc(this.#reached, hlc)
  }

  /** Whether a record has the same clock reading as the previous one, as after a move from two shards. */
  endsAmong({ hlc }: StoredRecord): boolean {
    return this.#last !== undefined && compareHlc(this.#last.record.hlc, hlc) === 0
  }

  outcome({ nextSeq, end }: { nextSeq: number; end: boolean }): Outcome {
    return { kind: 'page', events: this.#events, nextSeq, reached: this.#reached, end }
  }
}
