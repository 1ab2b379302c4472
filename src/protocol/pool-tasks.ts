import { assert } from '../base/assert.js'
import type { Check } from '../base/shape.js'

/** The tasks of one kind of thread by their names: what each is given, and what it answers. */
export type PoolTasks<Tasks> = { [Name in keyof Tasks]: { task: object; found: unknown } }

/** Checks of the answers to tasks. */
export type TaskAnswers<Tasks extends PoolTasks<Tasks>> = {
  [Name in keyof Tasks]: Check<Tasks[Name]['found']>
}

/** The answer of a thread to its task. @throws Error when it is of another shape */
export function answerOf<Found>(check: Check<Found>, found: unknown): Found {
  assert(check(found), 'a thread answers a task in the shape that the task asks for')
  return found
}
