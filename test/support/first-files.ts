import { readFileSync } from 'node:fs'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Runs the files whose first line contains `@run first` at the start: the longest ones. A long file at the
 * end would run alone while the other core is idle.
 */
export class FirstFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isFirst = ({ moduleId }: TestSpecification) =>
      readFileSync(moduleId, 'utf8').split('\n', 1)[0]?.includes('@run first') === true
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))]
  }
}
