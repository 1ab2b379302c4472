import { describeProgress, type ProgressPart } from '../base/progress.js'
import { printable } from './printable.js'

/** Milliseconds between two updates of the line. */
const UPDATE_MS = 200

/** Columns of a terminal that does not say how many it has. */
const COLUMNS_USUAL = 80

/** Where progress is shown, as standard error is. */
export interface Screen {
  isTTY?: boolean | undefined
  columns?: number | undefined
  write(text: string): unknown
}

/** Shows the progress of long work. */
export interface Progress {
  /** Begins a part; that before it stays on the screen as it ended. */
  show(part: ProgressPart): void
  /** Called by work that gives the timer no turn, as often as it likes. */
  tick(): void
  /** Shows the present state at once, before work that gives no turn for long. */
  paint(): void
  /** Ends the line. */
  end(): void
}

/**
 * Shows progress on a terminal: one line that is updated, with the rate and the time left. In a pipe or a file it shows
 * nothing.
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

  /** Leaves the last state of a part; one that took no time shows nothing. */
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
    // A line that the terminal breaks could not be updated. Some terminals do not know their width and say 0.
    const { columns = 0 } = this.#screen
    const text = line.slice(0, (columns > 0 ? columns : COLUMNS_USUAL) - 1)
    if (text === this.#shown) return
    this.#shown = text
    this.#screen.write(`\r\u001B[K${text}`)
  }
}
