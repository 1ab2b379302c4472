import type { BodyMemory } from '../../../base/gathered-bytes.js'

/**
 * Bytes that come in parts and are handed to other threads without a copy. They stay in parts: one piece would have to
 * be copied each time it grows.
 */
export class SharedBytes {
  readonly #memory: BodyMemory
  #parts: Uint8Array[] = []
  #length = 0

  /** @param memory counts them */
  constructor(memory: BodyMemory) {
    this.#memory = memory
  }

  get length(): number {
    return this.#length
  }

  get parts(): readonly Uint8Array[] {
    return this.#parts
  }

  /** Adds a copy of the bytes; nothing once there is no memory for the body, which has ended then. */
  add(bytes: Uint8Array): void {
    if (!this.#memory.add(bytes.length)) return
    const copy = new Uint8Array(new SharedArrayBuffer(bytes.length))
    copy.set(bytes)
    this.#parts.push(copy)
    this.#length += bytes.length
  }

  /** Drops so many of the first bytes. */
  drop(count: number): void {
    let left = count
    while (left > 0) {
      const first = this.#parts[0]
      if (first === undefined) break
      if (first.length > left) {
        this.#parts[0] = first.subarray(left)
        break
      }
      left -= first.length
      this.#parts.shift()
    }
    this.#length -= count
    this.#memory.give(count)
  }
}
