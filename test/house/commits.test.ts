import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

const SUBJECT_MAX = 72
/** The last commit before this rule existed. */
const BEFORE = '7530fc5'

/** Returns the `hash subject` lines whose subject is too long. */
function tooLong(log: string): string[] {
  return log.split('\n').filter((line) => line.slice(line.indexOf(' ') + 1).length > SUBJECT_MAX)
}

it('limits the subject of each commit to 72 characters', () => {
  expect(tooLong(`1234567 ${'x'.repeat(72)}\n89abcde ${'x'.repeat(73)}`)).toEqual([
    `89abcde ${'x'.repeat(73)}`,
  ])
  const { status, stdout } = spawnSync('git', ['log', '--format=%h %s', `${BEFORE}..HEAD`], {
    encoding: 'utf8',
  })
  // A copy of the tree without history has no commits to check.
  if (status === 0) expect(tooLong(stdout.trimEnd())).toEqual([])
})
