/**
 * The parts that a start has opened so far. A start that fails closes them again, the last one first: a process that
 * exits while its threads have stores open can hang or crash in native code.
 */
export class Opened {
  readonly #closers: (() => unknown)[] = []

  /** Adds the function that closes one part, which may have started only partly. */
  add(close: () => unknown): void {
    this.#closers.push(close)
  }

  /**
   * Closes all parts, even if one of them throws.
   * @param timeMs how long it waits; for ever when absent
   * @returns false when they have not ended within that time
   */
  async close(timeMs?: number): Promise<boolean> {
    if (timeMs === undefined) return this.#closeAll()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), timeMs)))
    const closed = await Promise.race([this.#closeAll(), late])
    clearTimeout(timer)
    return closed
  }

  async #closeAll(): Promise<true> {
    for (const close of this.#closers.splice(0).reverse()) {
      try {
        await close()
      } catch {
        // Only the failure of the start is reported.
      }
    }
    return true
  }
}
