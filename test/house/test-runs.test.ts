import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ciOnly, fullOnly, leftToCi, shortForms, unmeasuredAttacks } from '../support/ci-only.js'
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

/**
 * A call whose type is looked at by `expectTypeOf(call())` is carried out, and nobody waits for it: what it fails with is
 * reported where another file of the same process is by then. Its type is that of `() => call()`.
 */
const carriedOut = /\bexpectTypeOf\(\s*(?!\([^)]*\)\s*=>)[^\s()]+\(/

describe('the types of calls', () => {
  it('are looked at without carrying the calls out', () => {
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
  ])('of %j: %s', (text, found) => {
    expect(carriedOut.test(text)).toBe(found)
  })
})

describe('the attacks that run beside other tests', () => {
  it('measure nothing', () => {
    const measuring = filesWith(/support\/server\/(probe|process-figures)|cpuUsage/)
    expect(measuring).toContain('attacks/queries.test.ts')
    for (const name of unmeasuredAttacks) {
      expect(existsSync(join(root, `attacks/${name}.test.ts`)), name).toBe(true)
      expect(measuring).not.toContain(`attacks/${name}.test.ts`)
    }
  })
})

describe('what CI runs by two fronts', () => {
  it('is there', () => {
    const ci = readFileSync(join(root, '../.ci/run'), 'utf8')
    const [, list = ''] = /^by_two_fronts=\(\n(.*?)^\)$/ms.exec(ci) ?? []
    const named = list.match(/(?<=^|\s)test\/\S+/gm) ?? []
    expect(named.length).toBeGreaterThan(10)
    const files = filesWith(/\bit\b/).map((path) => `test/${path}`)
    for (const name of named)
      expect(
        files.some((path) => path.startsWith(name)),
        name,
      ).toBe(true)
  })
})

describe('the folders of tests that only CI runs whole', () => {
  it('have what npm test runs of them', () => {
    for (const [folder, short] of Object.entries(shortForms)) {
      expect(short.length).toBeGreaterThan(1)
      for (const name of short) expect(existsSync(join(root, folder, `${name}.test.ts`)), name).toBe(true)
    }
    for (const [name, others] of Object.entries(ciOnly)) {
      for (const one of [name, ...others.split(', ')])
        expect(existsSync(join(root, `${one}.test.ts`)), one).toBe(true)
      for (const other of others.split(', '))
        expect(leftToCi({}, ['run'])).not.toContain(`test/${other}.test.ts`)
    }
  })

  it('are left out of npm test but for those, and of nothing else', () => {
    const left = leftToCi({}, ['run'])
    expect(leftToCi({ STRANDFAST_FAULTS: 'short' }, ['run', 'test/e2e'])).toEqual(left)
    expect(left).toContain('test/faults/soak.test.ts')
    expect(left).not.toContain('test/faults/crash.test.ts')
    const named = [...Object.keys(ciOnly), ...fullOnly]
    for (const path of left.filter((one) => !named.includes(one.slice(5, -8)))) {
      const [, folder = '', file = ''] = path.split('/')
      expect(Object.keys(shortForms)).toContain(folder)
      expect(shortForms[folder]).not.toContain(file.replace('.test.ts', ''))
    }
    const ofFull = fullOnly.map((name) => `test/${name}.test.ts`)
    for (const env of [{ CI: 'true' }, { STRANDFAST_FAULTS: 'ci' }])
      expect(leftToCi(env, ['run'])).toEqual(ofFull)
    expect(leftToCi({ STRANDFAST_FAULTS: 'full' }, ['run'])).toEqual([])
    expect(leftToCi({}, ['run', 'test/faults/soak.test.ts'])).toEqual([])
  })
})
