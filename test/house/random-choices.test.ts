import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesBelow } from './tree.js'

/** Sources of random numbers, and the only files in `test` that may use them. */
const sources: [what: string, pattern: RegExp, allowed: readonly string[]][] = [
  ['fast-check without a seed', /from 'fast-check'/, ['support/fast-check.ts']],
  ['randomInt of node:crypto', /\brandomInt\(/, []],
  [
    'Math.random',
    /\bMath\.random\b/,
    [
      // Names that only need to be unique, and an argument of the client on whose value no test depends.
      'client/server.test.ts',
      'faults/ended-uploads.test.ts',
      'support/faults/leak.mjs',
      'support/server/pool-tasks.mjs',
    ],
  ],
]

const files = filesBelow('test').filter((path) => /\.(tsx?|mjs)$/.test(path))

/** The files in `test` whose text matches, without the tier in their names. */
function filesWith(pattern: RegExp): string[] {
  return files
    .filter((path) => !path.endsWith('random-choices.test.ts') && pattern.test(readFileSync(path, 'utf8')))
    .map((path) =>
      relative('test', path)
        .replaceAll('\\', '/')
        .replace(/\.(slow|campaign)\.test/, '.test'),
    )
    .sort()
}

describe('a test', () => {
  it.each(sources)('uses the seed of the run, not %s', (_what, pattern, allowed) => {
    expect(filesWith(pattern)).toEqual(allowed)
  })
})

/**
 * `expectTypeOf(call())` executes the call and drops its promise, which then fails in another file of the
 * process. `() => call()` has the same type.
 */
const executedCall = /\bexpectTypeOf\(\s*(?!\([^)]*\)\s*=>)[^\s()]+\(/

describe('a test of types', () => {
  it('executes no call', () => {
    expect(filesWith(executedCall)).toEqual([])
  })

  it.each([
    ['expectTypeOf(notes.write({}))', true],
    ['expectTypeOf(\n  write({}),\n)', true],
    ["expectTypeOf(client.collection<Note>('notes').write({}))", true],
    ['expectTypeOf(() => notes.write({}))', false],
    ['expectTypeOf((id: string) => notes.read(id))', false],
    ['expectTypeOf(await notes.write({}))', false],
    ['expectTypeOf(record)', false],
    ['expectTypeOf<Note>()', false],
  ])('detects a call in %j: %s', (text, found) => {
    expect(executedCall.test(text)).toBe(found)
  })
})
