import type { Upload } from '../limits/uploads.js'

/** Takes a part of a body, which is valid only during the call. */
export type ReceivePart = (part: ArrayBuffer, last: boolean) => void

/** Parts of a body that came before it was known what to do with them. */
export class HeldBody {
  readonly #memoryOf: () => Upload
  #memory: Upload | undefined
  #parts: { part: ArrayBuffer; last: boolean }[] = []
  #receive: ReceivePart | undefined

  /** @param memoryOf makes what counts the bytes that are kept */
  constructor(memoryOf: () => Upload) {
    this.#memoryOf = memoryOf
  }

  /** Whether the parts were taken, or dropped. */
  get isTaken(): boolean {
    return this.#receive !== undefined
  }

  add(part: ArrayBuffer, last: boolean): void {
    if (this.#receive !== undefined) {
      this.#receive(part, last)
      return
    }
    this.#memory ??= this.#memoryOf()
    if (this.#memory.add(part.byteLength)) this.#parts.push({ part: part.slice(0), last })
  }

  /** Has `receive` called with the parts that have come, after `begin`, and with those that will come. */
  take(receive: ReceivePart, begin: () => void): void {
    this.#receive = receive
    this.#memory?.release()
    begin()
    for (const { part, last } of this.#parts.splice(0)) receive(part, last)
  }

  /** Drops what has come and will come. */
  drop(): void {
    this.#receive = () => {}
    this.#parts = []
    this.#memory?.release()
  }
}
