import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** The options of node with which its clock is stopped and controlled by a `MovedClock`. */
export const movedClockOptions: readonly string[] = [
  '--import',
  new URL('moved-clock.mjs', import.meta.url).href,
]

/** The clock of servers in other processes, which only moves when it is set. */
export class MovedClock {
  /** The environment of the servers. */
  readonly env: Record<string, string>
  readonly #file: number

  /** @param directory where its file is created */
  constructor(directory: string, nowMs: number) {
    const path = join(directory, 'clock')
    this.#file = openSync(path, 'w')
    this.env = { TEST_CLOCK_FILE: path }
    this.set(nowMs)
  }

  /** Sets the clock of all threads of the servers. */
  set(nowMs: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(nowMs)
    writeSync(this.#file, bytes, 0, 8, 0)
  }

  close(): void {
    closeSync(this.#file)
  }
}
