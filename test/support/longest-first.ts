import { BaseSequencer, type TestSequencer, type TestSpecification, type Vitest } from 'vitest/node'

/**
 * The longest test files. One that was begun last would run alone, with the other core idle. Behind the very longest come
 * those that mostly wait, beside which it has both cores.
 */
const longest = [
  'faults/crash',
  'faults/power-loss',
  'faults/soak',
  'cluster/rounds',
  'cluster/planted-nodes',
  'cluster/node-database',
  'faults/hung-threads',
  'faults/slow-streams',
  'faults/chunked-bodies',
  'faults/slow-clients',
  'faults/failing-calls',
  'faults/flipped-bits',
  'faults/reshard-crash',
  'e2e/packages',
  'e2e/image',
  'model/server-model',
  'e2e/client-browser',
  'e2e/docs-page',
  'e2e/postgres-sink',
  'e2e/sign-in-page',
  'threads/shard-death',
  'faults/auth-timing',
].map((name) => `/test/${name}.test.ts`)

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
