import { signal } from '@preact/signals'
import type { ServiceClient, StreamEvent, Subscription } from '../../../client/index.js'
import { explain } from '../explain.js'
import { msOf } from '../format.js'

/** Whose records a tail shows: an agent's, those of the agents named, or all. */
export type TailOf = string | readonly string[] | undefined

/** A record as it came by a stream. */
export interface LiveRow {
  /** Its place in the order in which they came. */
  id: number
  agent: string
  seq: number
  type: string
  ms: number
  payload: unknown
}

/** Rows that came after one another: what is shown is compared block by block, not row by row. */
export interface LiveBlock {
  /** Of the first of them. */
  id: number
  /** Newest first. */
  rows: readonly LiveRow[]
}

/** What a tail is doing. */
export type TailState =
  | { kind: 'connecting' }
  | { kind: 'replaying' }
  | { kind: 'live' }
  | { kind: 'lost' }
  | { kind: 'paused' }
  | { kind: 'hidden' }
  | { kind: 'refused'; message: string }

/** Rows that are kept. */
const ROWS_MAX = 500
const BLOCK_ROWS = 50
/** Rows that one frame adds: thousands a second would otherwise hold the page up. */
const FRAME_ROWS_MAX = 64
const RATE_MS = 1_000

/** Where a tail begins: an HLC or ISO 8601; undefined for now. */
export interface TailStart {
  since: string | undefined
  /** Only records whose body has this field; empty for all. */
  field: string
}

/**
 * The latest records of agents as they come. Paused, or while the page is hidden, its connection is closed, and it goes
 * on from its cursor without a gap.
 */
export class Tail {
  /** Newest first. */
  readonly blocks = signal<readonly LiveBlock[]>([])
  readonly state = signal<TailState>({ kind: 'connecting' })
  readonly perSecond = signal(0)
  /** Rows that wait while the list is not at its top. */
  readonly waiting = signal(0)
  readonly #service: ServiceClient
  readonly #of: TailOf
  readonly #rateTimer: ReturnType<typeof setInterval>
  #start: TailStart = { since: undefined, field: '' }
  #subscription: Subscription<unknown> | undefined
  #cursor: string | undefined
  #pending: LiveRow[] = []
  #frame: number | undefined
  #isHeld = false
  #counted = 0
  #came = 0

  constructor(service: ServiceClient, of: TailOf) {
    this.#service = service
    this.#of = of
    this.#rateTimer = setInterval(() => {
      this.perSecond.value = this.#counted
      this.#counted = 0
    }, RATE_MS)
  }

  /** Begins anew. */
  begin(start: TailStart): void {
    this.#disconnect()
    this.#start = start
    this.#cursor = undefined
    this.#pending = []
    this.blocks.value = []
    this.waiting.value = 0
    this.#open()
  }

  /** Looks at another field from here on. */
  narrow(field: string): void {
    this.#start = { ...this.#start, field }
    if (this.#subscription !== undefined) this.#open()
  }

  /** Closes the connection, and goes on from its cursor with `resume`. */
  pause(kind: 'paused' | 'hidden'): void {
    this.#disconnect()
    this.#show(ROWS_MAX)
    this.state.value = { kind }
  }

  /** Goes on where it was paused. */
  resume(): void {
    this.#open()
  }

  /** While held, new rows wait, so that what is being read stays in place. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    if (!isHeld) this.#show(ROWS_MAX)
  }

  /** Ends it for good. */
  close(): void {
    this.#disconnect()
    clearInterval(this.#rateTimer)
    this.#cancelFrame()
  }

  #disconnect(): void {
    this.#cursor = this.#subscription?.cursor ?? this.#cursor
    this.#subscription?.close()
    this.#subscription = undefined
  }

  #open(): void {
    this.#disconnect()
    const { since, field } = this.#start
    this.state.value = { kind: 'connecting' }
    const take = (event: StreamEvent<unknown>): void => this.#take(event)
    const options = {
      ...(this.#cursor === undefined ? { since } : { lastEventId: this.#cursor }),
      ...(field !== '' && { filter: field }),
      onOpen: () => {
        this.state.value = { kind: 'replaying' }
      },
      onCaughtUp: () => {
        this.state.value = { kind: 'live' }
      },
      onReconnect: () => {
        this.state.value = { kind: 'lost' }
      },
      onError: (error: unknown) => {
        this.state.value = { kind: 'refused', message: explain(error) }
      },
    }
    this.#subscription =
      typeof this.#of === 'string'
        ? this.#service.subscribeAgent(this.#of, take, options)
        : this.#service.subscribeGlobal(take, { ...options, agents: this.#of })
  }

  #take({ agent, seq, type, timestamp_hlc: hlc, payload }: StreamEvent<unknown>): void {
    this.#counted += 1
    this.#came += 1
    this.#pending.unshift({ id: this.#came, agent, seq, type, ms: msOf(hlc), payload })
    if (this.#pending.length > ROWS_MAX) this.#pending.length = ROWS_MAX
    if (this.#isHeld) this.waiting.value = this.#pending.length
    else this.#showInFrame()
  }

  /**
   * Shows rows in the next frame, unless the list has been scrolled by then: a browser tells of a scroll only at the
   * beginning of a frame, before this.
   */
  #showInFrame(): void {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined
      if (this.#isHeld) this.waiting.value = this.#pending.length
      else this.#show(FRAME_ROWS_MAX)
    })
  }

  /** Shows the oldest rows that wait, and the others in the next frames. */
  #show(rowsMax: number): void {
    this.#cancelFrame()
    if (this.#pending.length === 0) return
    const shown = this.#pending.splice(-rowsMax)
    this.blocks.value = trimmed(joined(this.blocks.value, shown))
    this.waiting.value = 0
    if (this.#pending.length > 0) this.#showInFrame()
  }

  #cancelFrame(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame)
    this.#frame = undefined
  }
}

/** Blocks with newer rows before them: the newest block is filled first. */
function joined(before: readonly LiveBlock[], newer: readonly LiveRow[]): LiveBlock[] {
  const blocks = [...before]
  let rest = newer
  const [newest] = blocks
  const room = newest === undefined ? 0 : BLOCK_ROWS - newest.rows.length
  if (newest !== undefined && room > 0) {
    blocks[0] = { id: newest.id, rows: [...rest.slice(-room), ...newest.rows] }
    rest = rest.slice(0, -room)
  }
  for (; rest.length > 0; rest = rest.slice(0, -BLOCK_ROWS)) {
    const rows = rest.slice(-BLOCK_ROWS)
    blocks.unshift({ id: rows.at(-1)?.id ?? 0, rows })
  }
  return blocks
}

/** The newest rows that are kept. */
function trimmed(blocks: readonly LiveBlock[]): LiveBlock[] {
  let room = ROWS_MAX
  return blocks.flatMap((block) => {
    const rows = block.rows.length > room ? block.rows.slice(0, room) : block.rows
    room -= rows.length
    if (rows.length === 0) return []
    return rows === block.rows ? [block] : [{ id: block.id, rows }]
  })
}
