import { BaseSequencer, type TestSequencer, type TestSpecification, type Vitest } from 'vitest/node'

/** Test files of minutes each. One that was begun last would run alone, with the other core idle. */
const longest = ['crash', 'power-loss', 'flipped-bits', 'failing-calls', 'reshard-crash', 'soak'].map(
  (name) => `/test/faults/${name}.test.ts`,
)

/** Begins with the longest test files; the others come in their usual order. */
export class LongestFirst implements TestSequencer {
  readonly #usual: BaseSequencer

  constructor(vitest: Vitest) {
    this.#usual = new BaseSequencer(vitest)
  }

  shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    return this.#usual.shard(files)
  }

  async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await this.#usual.sort(files)
    const first = longest.flatMap((end) => sorted.filter(({ moduleId }) => moduleId.endsWith(end)))
    return [...first, ...sorted.filter((file) => !first.includes(file))]
  }
}
