/**
 * What a start has opened so far. One that fails closes it again, the last one first: a process that exits while its
 * threads have stores open can hang or crash in their native parts.
 */
export class Opened {
  readonly #closers: (() => unknown)[] = []

  /** Adds what closes one part, which may have started only half. */
  add(close: () => unknown): void {
    this.#closers.push(close)
  }

  /**
   * Closes all parts, whatever one of them says to it.
   * @returns false when they have not ended within `timeMs`
   */
  async close(timeMs: number): Promise<boolean> {
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
        // It is the failure of the start that is told.
      }
    }
    return true
  }
}
