import { assert } from '../base/assert.js'
import type { Check } from '../base/shape.js'

export type PoolTasks<Tasks> = { [Name in keyof Tasks]: { task: object; found: unknown } }

export type TaskAnswers<Tasks extends PoolTasks<Tasks>> = {
  [Name in keyof Tasks]: Check<Tasks[Name]['found']>
}

/** Checks the result of a task. @throws Error when it has another shape */
export function answerOf<Found>(check: Check<Found>, found: unknown): Found {
  assert(check(found), 'the result of a task has the shape that the task declares')
  return found
}
