import { signal } from '@preact/signals'
import type { ServiceClient, StreamEvent, Subscription } from '../../../client/index.js'
import { explain } from '../explain.js'
import { msOf } from '../format.js'
import { StreamTurn, type TurnEnd } from './stream-turn.js'

/** The agents whose records a tail shows: one, several, or all if undefined. */
export type TailSource = string | readonly string[] | undefined

/** A record from a stream. */
export interface LiveRow {
  /** Counts up in the order of arrival. */
  id: number
  agent: string
  seq: number
  type: string
  ms: number
  hlc: string
  payload: unknown
}

/** Consecutive rows. Rendering compares block by block instead of row by row. */
export interface LiveBlock {
  /** The id of its first row. */
  id: number
  /** Newest first. */
  rows: readonly LiveRow[]
}

export type TailState =
  | { kind: 'connecting' }
  | { kind: 'replaying' }
  | { kind: 'live' }
  | { kind: 'lost' }
  | { kind: 'paused' }
  | { kind: TurnEnd }
  | { kind: 'refused'; message: string }

/** The number of rows that a tail retains. */
export const ROWS_MAX = 500
const BLOCK_ROWS = 50
/** The most rows added in one frame, so that thousands of records per second do not block the page. */
const FRAME_ROWS_MAX = 64
const RATE_MS = 1_000

/** The types of a query or stream that includes system records. */
export const allTypes = ['*']

export interface TailStart {
  /** An HLC or ISO 8601 time; undefined for now. */
  since: string | undefined
  /** Shows only records whose body has this field; empty for all. */
  field: string
}

/**
 * The latest records of agents as they arrive. While the tail is paused, the page is hidden or other tabs have
 * the connections of the browser, its connection is closed; it then resumes from its cursor without a gap.
 */
export class Tail {
  /** Newest first. */
  readonly blocks = signal<readonly LiveBlock[]>([])
  readonly state = signal<TailState>({ kind: 'connecting' })
  readonly perSecond = signal(0)
  /** The number of rows held back while the list is scrolled away from its top. */
  readonly waiting = signal(0)
  /** The number of records received since the start. */
  readonly received = signal(0)
  readonly #service: ServiceClient
  readonly #of: TailSource
  #showsSystem: boolean
  readonly #turn: StreamTurn
  readonly #rateTimer: ReturnType<typeof setInterval>
  #start: TailStart = { since: undefined, field: '' }
  #subscription: Subscription<unknown> | undefined
  #cursor: string | undefined
  #pending: LiveRow[] = []
  #frame: number | undefined
  #isHeld = false
  #inThisSecond = 0
  #received = 0

  /** @param showsSystem whether records of the types sys/* and edge/* are shown too */
  constructor(service: ServiceClient, of: TailSource, showsSystem = false) {
    this.#service = service
    this.#showsSystem = showsSystem
    this.#of = of
    this.#turn = new StreamTurn({
      end: (why) => this.pause(why),
      comeBack: () => {
        const { kind } = this.state.peek()
        if (kind === 'hidden' || kind === 'elsewhere') this.resume()
      },
    })
    this.#rateTimer = setInterval(() => {
      this.perSecond.value = this.#inThisSecond
      this.#inThisSecond = 0
    }, RATE_MS)
  }

  /** Clears the rows and starts again. */
  begin(start: TailStart): void {
    this.#disconnect()
    this.#start = start
    this.#cursor = undefined
    this.#pending = []
    this.#isHeld = false
    this.#received = 0
    this.blocks.value = []
    this.waiting.value = 0
    this.received.value = 0
    this.#open()
  }

  /** Filters later records by another field. */
  narrow(field: string): void {
    this.#start = { ...this.#start, field }
    if (this.#subscription !== undefined) this.#open()
  }

  /** Shows system records from now on, or no more. */
  showSystem(isOn: boolean): void {
    this.#showsSystem = isOn
    if (this.#subscription !== undefined) this.#open()
  }

  /** Closes the connection; `resume` continues from its cursor. */
  pause(kind: 'paused' | TurnEnd): void {
    this.#disconnect()
    if (this.state.peek().kind === 'replaying') this.#sortPending()
    this.#show(ROWS_MAX)
    this.state.value = { kind }
  }

  /** Continues from where the tail was paused. */
  resume(): void {
    this.#open()
  }

  /** While held, new rows are not shown, so that the visible rows stay in place. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    if (!isHeld) this.#show(ROWS_MAX)
  }

  /** Closes the tail permanently. */
  close(): void {
    this.#disconnect()
    this.#turn.close()
    clearInterval(this.#rateTimer)
    this.#cancelFrame()
  }

  #disconnect(): void {
    this.#cursor = this.#subscription?.cursor ?? this.#cursor
    this.#subscription?.close()
    this.#subscription = undefined
    this.#turn.release()
  }

  #open(): void {
    this.#disconnect()
    const { since, field } = this.#start
    if (!this.#turn.take()) {
      this.state.value = { kind: 'hidden' }
      return
    }
    this.state.value = { kind: 'connecting' }
    const onEvent = (event: StreamEvent<unknown>): void => this.#receive(event)
    const options = {
      ...(this.#cursor === undefined ? { since } : { lastEventId: this.#cursor }),
      ...(field !== '' && { filter: field }),
      ...(this.#showsSystem && { types: allTypes }),
      onOpen: () => {
        this.state.value = { kind: 'replaying' }
      },
      onCaughtUp: () => {
        this.state.value = { kind: 'live' }
        this.#sortPending()
        this.#offer()
      },
      onReconnect: () => {
        this.state.value = { kind: 'lost' }
      },
      onError: (error: unknown) => {
        this.#turn.release()
        this.state.value = { kind: 'refused', message: explain(error) }
      },
    }
    this.#subscription =
      typeof this.#of === 'string'
        ? this.#service.subscribeAgent(this.#of, onEvent, options)
        : this.#service.subscribeGlobal(onEvent, { ...options, agents: this.#of })
  }

  #receive({ agent, seq, type, timestamp_hlc: hlc, payload }: StreamEvent<unknown>): void {
    this.#inThisSecond += 1
    this.#received += 1
    this.#pending.unshift({ id: this.#received, agent, seq, type, ms: msOf(hlc), hlc, payload })
    if (this.state.peek().kind === 'replaying') {
      if (this.#pending.length > 2 * ROWS_MAX) this.#sortPending()
    } else {
      if (this.#pending.length > ROWS_MAX) this.#pending.length = ROWS_MAX
      this.#offer()
    }
  }

  /** Replayed records of several shards do not arrive in order of time, and only the last are shown. */
  #sortPending(): void {
    this.#pending.sort((one, other) => (one.hlc < other.hlc ? 1 : -1))
    if (this.#pending.length > ROWS_MAX) this.#pending.length = ROWS_MAX
  }

  #offer(): void {
    if (this.#isHeld) this.waiting.value = this.#pending.length
    else this.#showInFrame()
  }

  /**
   * Shows rows in the next frame, unless the list has been scrolled by then. Browsers dispatch scroll events
   * at the start of a frame, before this callback.
   */
  #showInFrame(): void {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined
      if (this.#isHeld) this.waiting.value = this.#pending.length
      else this.#show(FRAME_ROWS_MAX)
    })
  }

  /** Shows the oldest pending rows, and the others in the next frames. */
  #show(rowsMax: number): void {
    this.#cancelFrame()
    if (this.#pending.length === 0) return
    const shown = this.#pending.splice(-rowsMax)
    this.received.value = this.#received
    this.blocks.value = trimmed(joined(this.blocks.value, shown))
    this.waiting.value = 0
    if (this.#pending.length > 0) this.#showInFrame()
  }

  #cancelFrame(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame)
    this.#frame = undefined
  }
}

/** Prepends newer rows to the blocks; the newest block is filled first. */
function joined(before: readonly LiveBlock[], newer: readonly LiveRow[]): LiveBlock[] {
  const blocks = [...before]
  let rest = newer
  const [newest] = blocks
  const free = newest === undefined ? 0 : BLOCK_ROWS - newest.rows.length
  if (newest !== undefined && free > 0) {
    blocks[0] = { id: newest.id, rows: [...rest.slice(-free), ...newest.rows] }
    rest = rest.slice(0, -free)
  }
  for (; rest.length > 0; rest = rest.slice(0, -BLOCK_ROWS)) {
    const rows = rest.slice(-BLOCK_ROWS)
    blocks.unshift({ id: rows.at(-1)?.id ?? 0, rows })
  }
  return blocks
}

/** Drops the oldest rows beyond `ROWS_MAX`. */
function trimmed(blocks: readonly LiveBlock[]): LiveBlock[] {
  let left = ROWS_MAX
  return blocks.flatMap((block) => {
    const rows = block.rows.length > left ? block.rows.slice(0, left) : block.rows
    left -= rows.length
    if (rows.length === 0) return []
    return rows === block.rows ? [block] : [{ id: block.id, rows }]
  })
}
