import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** What node is given so that its clock stands still and is moved by a `MovedClock`. */
export const movedClockOptions: readonly string[] = [
  '--import',
  new URL('moved-clock.mjs', import.meta.url).href,
]

/** The clock of servers in processes of their own, which stands still between two moves. */
export class MovedClock {
  /** What the servers are started with. */
  readonly env: Record<string, string>
  readonly #file: number

  /** @param directory where its file is put */
  constructor(directory: string, nowMs: number) {
    const path = join(directory, 'clock')
    this.#file = openSync(path, 'w')
    this.env = { TEST_CLOCK_FILE: path }
    this.set(nowMs)
  }

  /** From here on every thread of the servers reads `nowMs`. */
  set(nowMs: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(nowMs)
    writeSync(this.#file, bytes, 0, 8, 0)
  }

  close(): void {
    closeSync(this.#file)
  }
}
