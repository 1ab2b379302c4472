import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ciOnly, leftToCi } from '../support/ci-only.js'
import { seedOfRun } from '../support/run-seed.js'

/** What draws from somewhere else than the seed of the run, and the files that may. */
const strays: [what: string, drawn: RegExp, allowed: readonly string[]][] = [
  ['fast-check without the seed of the run', /from 'fast-check'/, ['support/fast-check.ts']],
  ['node:crypto for a number', /\brandomInt\(/, ['support/run-seed.ts']],
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

const root = join(import.meta.dirname, '..')

/** The files of tests that have `pattern` in them. */
function filesWith(pattern: RegExp): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|mjs)$/.test(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => path !== import.meta.filename && pattern.test(readFileSync(path, 'utf8')))
    .map((path) => relative(root, path))
    .sort()
}

describe('the chance of tests', () => {
  it.each(strays)('comes from the seed of the run: not from %s', (_what, drawn, allowed) => {
    expect(filesWith(drawn)).toEqual(allowed)
  })

  it('is the same on every machine for npm test, and new in CI and in the long forms of the fault tests', () => {
    expect(seedOfRun({})).toBe(seedOfRun({ STRANDFAST_FAULTS: 'short' }))
    for (const env of [{ CI: 'true' }, { STRANDFAST_FAULTS: 'ci' }, { STRANDFAST_FAULTS: 'full' }]) {
      const drawn = Array.from({ length: 4 }, () => seedOfRun(env))
      expect(new Set(drawn).size, JSON.stringify(env)).toBe(drawn.length)
    }
  })

  it('is drawn again by STRANDFAST_SEED, and a seed that is no integer is refused', () => {
    expect(seedOfRun({ CI: 'true', STRANDFAST_SEED: '42' })).toBe(42)
    for (const wrong of ['', ' ', 'x', '1.5', '1e400'])
      expect(() => seedOfRun({ STRANDFAST_SEED: wrong })).toThrow('Expected STRANDFAST_SEED to be an integer')
  })
})

describe('the test files that only CI runs', () => {
  it('are there, and so is what npm test runs of their kind', () => {
    for (const [name, others] of Object.entries(ciOnly)) {
      for (const one of [name, ...others.split(', ')])
        expect(existsSync(join(root, `${one}.test.ts`)), one).toBe(true)
      for (const other of others.split(', ')) expect(Object.keys(ciOnly)).not.toContain(other)
    }
  })

  it('are left out of npm test, and of nothing else', () => {
    const all = Object.keys(ciOnly).map((name) => `test/${name}.test.ts`)
    expect(leftToCi({}, ['run'])).toEqual(all)
    expect(leftToCi({ STRANDFAST_FAULTS: 'short' }, ['run', 'test/e2e'])).toEqual(all)
    for (const env of [{ CI: 'true' }, { STRANDFAST_FAULTS: 'ci' }, { STRANDFAST_FAULTS: 'full' }])
      expect(leftToCi(env, ['run'])).toEqual([])
    expect(leftToCi({}, ['run', 'test/faults/soak.test.ts'])).toEqual([])
  })
})
