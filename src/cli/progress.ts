import { describeProgress, type ProgressPart } from '../base/progress.js'
import { printable } from './printable.js'

/** Milliseconds between two updates of the line. */
const UPDATE_MS = 200

/** Width assumed for a terminal that does not report its width. */
const COLUMNS_DEFAULT = 80

/** The terminal that shows the progress, such as standard error. */
export interface Screen {
  isTTY?: boolean | undefined
  columns?: number | undefined
  write(text: string): unknown
}

export interface Progress {
  /** Begins a part of the work; the last line of the part before stays on the screen. */
  show(part: ProgressPart): void
  /** Updates the line if it is due. Called often by work that blocks the event loop, where no timer runs. */
  tick(): void
  /** Updates the line now. Called before work that blocks the event loop for long. */
  paint(): void
  end(): void
}

/**
 * Shows progress on a terminal as one updated line, with the rate and the remaining time. Writes nothing to a
 * pipe or a file.
 */
export function startProgress(screen: Screen = process.stderr, nowMs = () => performance.now()): Progress {
  if (screen.isTTY !== true) return { show() {}, tick() {}, paint() {}, end() {} }
  return new ProgressLine(screen, nowMs)
}

class ProgressLine implements Progress {
  readonly #screen: Screen
  readonly #nowMs: () => number
  readonly #timer = setInterval(() => this.paint(), UPDATE_MS)
  #part: { part: ProgressPart; sinceMs: number } | undefined
  #paintedMs: number
  #shown = ''

  constructor(screen: Screen, nowMs: () => number) {
    this.#screen = screen
    this.#nowMs = nowMs
    this.#paintedMs = nowMs()
    this.#timer.unref()
  }

  show(part: ProgressPart): void {
    this.#endPart()
    this.#part = { part, sinceMs: this.#nowMs() }
  }

  tick(): void {
    if (this.#nowMs() - this.#paintedMs >= UPDATE_MS) this.paint()
  }

  end(): void {
    clearInterval(this.#timer)
    this.#endPart()
  }

  /** Shows the final state of a part, unless the part ended before the first update. */
  #endPart(): void {
    if (this.#shown !== '') {
      this.paint()
      this.#screen.write('\n')
    }
    this.#shown = ''
    this.#part = undefined
  }

  paint(): void {
    this.#paintedMs = this.#nowMs()
    if (this.#part === undefined) return
    const { part, sinceMs } = this.#part
    const line = printable(describeProgress(part, this.#paintedMs - sinceMs))
    // A line that wraps cannot be updated. Some terminals report a width of 0.
    const { columns = 0 } = this.#screen
    const text = line.slice(0, (columns > 0 ? columns : COLUMNS_DEFAULT) - 1)
    if (text === this.#shown) return
    this.#shown = text
    this.#screen.write(`\r\u001B[K${text}`)
  }
}
