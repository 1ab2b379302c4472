import { readFileSync } from 'node:fs'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Begins with the files whose first line says `@run first`: the longest ones. A long file that began last would run alone,
 * with the other core idle.
 */
export class FirstFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isFirst = ({ moduleId }: TestSpecification) =>
      readFileSync(moduleId, 'utf8').split('\n', 1)[0]?.includes('@run first') === true
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))]
  }
}
