/**
 * What tests of one server make before it is started again. Each test declares its part beside itself; `run` makes all
 * parts, so that one restart serves them all.
 */
export class BeforeRestart {
  readonly #makers: (() => Promise<void>)[] = []

  /** Has `run` call `make`. @returns reads what was made, for the test after the restart */
  add<T>(make: () => Promise<T>): () => T {
    const made: T[] = []
    this.#makers.push(async () => {
      made.push(await make())
    })
    return () => {
      const [value] = made
      if (value === undefined) throw new Error('Expected the part that was made before the restart')
      return value
    }
  }

  /** Makes all parts, one after another. */
  async run(): Promise<void> {
    for (const make of this.#makers) await make()
  }
}
