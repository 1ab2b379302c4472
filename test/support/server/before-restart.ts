/**
 * Collects what tests create on a server before its restart. Each test declares its part next to itself;
 * `run` creates all parts, so that one restart serves all tests.
 */
export class BeforeRestart {
  readonly #parts: (() => Promise<void>)[] = []

  /** Registers a part. @returns a function that returns the created value, for the test after the restart */
  add<T>(create: () => Promise<T>): () => T {
    const values: T[] = []
    this.#parts.push(async () => {
      values.push(await create())
    })
    return () => {
      const [value] = values
      if (value === undefined) throw new Error('This part was not created before the restart')
      return value
    }
  }

  /** Creates all parts, one after another. */
  async run(): Promise<void> {
    for (const create of this.#parts) await create()
  }
}
