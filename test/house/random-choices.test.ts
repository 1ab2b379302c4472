import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesBelow } from './tree.js'

/** Sources of random numbers, and the only files below `test` that may name them. */
const sources: [what: string, pattern: RegExp, allowed: readonly string[]][] = [
  ['fast-check without a seed', /from 'fast-check'/, ['support/fast-check.ts']],
  ['randomInt of node:crypto', /\brandomInt\(/, []],
  [
    'Math.random',
    /\bMath\.random\b/,
    [
      // Names that only must differ, and an argument of the client whose draw no test depends on.
      'client/server.test.ts',
      'faults/ended-uploads.test.ts',
      'support/faults/leak.mjs',
      'support/server/pool-tasks.mjs',
    ],
  ],
]

const files = filesBelow('test').filter((path) => /\.(tsx?|mjs)$/.test(path))

/** The files below `test` whose text matches, without the tier in their names. */
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
  it.each(sources)('draws from the seed of the run, not from %s', (_what, pattern, allowed) => {
    expect(filesWith(pattern)).toEqual(allowed)
  })
})

/**
 * `expectTypeOf(call())` carries out the call and drops its promise, which then fails in another file of the same process.
 * `() => call()` has the same type.
 */
const carriedOut = /\bexpectTypeOf\(\s*(?!\([^)]*\)\s*=>)[^\s()]+\(/

describe('a test of types', () => {
  it('carries out no call', () => {
    expect(filesWith(carriedOut)).toEqual([])
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
  ])('sees a call in %j: %s', (text, found) => {
    expect(carriedOut.test(text)).toBe(found)
  })
})
