import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

// The steps of the gate that are no linter, each made to fail: a step that cannot fail guards nothing.

let tree: string

function plant(path: string, text: string): void {
  mkdirSync(dirname(join(tree, path)), { recursive: true })
  writeFileSync(join(tree, path), text)
}

function plantCopy(path: string): void {
  plant(path, '')
  copyFileSync(path, join(tree, path))
}

const run = (...parts: string[]) => spawnSync(process.execPath, parts, { cwd: tree, encoding: 'utf8' })

beforeEach(() => {
  tree = mkdtempSync(join(tmpdir(), 'gate-'))
})

afterEach(() => rmSync(tree, { recursive: true, force: true }))

describe('the search for dead code', () => {
  const knip = resolve('node_modules/knip/bin/knip.js')

  beforeEach(() => {
    plantCopy('knip.json')
    plant('package.json', '{ "name": "planted", "version": "1.0.0", "type": "module" }')
    plant('tsconfig.json', '{ "compilerOptions": { "module": "nodenext" } }')
    symlinkSync(resolve('node_modules'), join(tree, 'node_modules'))
    plant('src/main.ts', "import { used } from './base/used.js'\n\nused()\n")
    plant('src/base/used.ts', 'export function used(): void {}\n')
  })

  it('passes when everything is used', () => {
    const { status, stdout } = run(knip, '--no-progress', '--no-config-hints')
    expect(stdout).toBe('')
    expect(status).toBe(0)
  })

  it('finds a file that nobody imports and an export that nobody uses', () => {
    plant('src/base/orphan.ts', 'export const orphan = 1\n')
    plant('src/base/used.ts', 'export function used(): void {}\nexport function unusedExport(): void {}\n')
    const { status, stdout } = run(knip, '--no-progress', '--no-config-hints')
    expect(stdout).toContain('src/base/orphan.ts')
    expect(stdout).toContain('unusedExport')
    expect(status).toBe(1)
  })
})

describe('the types', () => {
  const tsc = resolve('node_modules/typescript/bin/tsc')
  const check = () => run(tsc, '-p', 'tsconfig.json', '--noEmit')

  beforeEach(() => {
    for (const path of ['tsconfig.json', 'src/base/unknown-json.d.ts']) plantCopy(path)
    plant('package.json', '{ "name": "planted", "version": "1.0.0", "type": "module" }')
    symlinkSync(resolve('node_modules'), join(tree, 'node_modules'))
    plant(
      'src/base/clean.ts',
      'export const first = (list: number[]): number | undefined => list[0]\n' +
        'export const read = (text: string): unknown => JSON.parse(text)\n',
    )
  })

  it('pass where what may be missing is, and JSON is looked at before it is used', () => {
    const { status, stdout } = check()
    expect(stdout).toBe('')
    expect(status).toBe(0)
  })

  it.each([
    ['an index that may be missing', 'export const first = (list: number[]): number => list[0]\n'],
    ['JSON of a shape', 'export const read = (text: string): { id: string } => JSON.parse(text)\n'],
    [
      'JSON of a shape, through a function',
      'export const read = (text: string): { id: string } => JSON.parse(text, (_key, value) => value)\n',
    ],
    [
      'an answer of a shape',
      'export const read = async (answer: Response): Promise<{ id: string }> => answer.json()\n',
    ],
  ])('refuse %s', (_, code) => {
    plant('src/base/planted.ts', code)
    const { status, stdout } = check()
    expect(stdout).toContain('src/base/planted.ts')
    expect(stdout).toContain('not assignable')
    expect(status).not.toBe(0)
  })
})

describe('the types of the client', () => {
  const tsc = resolve('node_modules/typescript/bin/tsc')
  const check = () => run(tsc, '-p', 'tsconfig.client.json')

  beforeEach(() => {
    for (const name of ['tsconfig.json', 'tsconfig.client.json', 'tsconfig.declared.json']) plantCopy(name)
    plant('package.json', '{ "name": "planted", "version": "1.0.0", "type": "module" }')
    symlinkSync(resolve('node_modules'), join(tree, 'node_modules'))
    plant(
      'src/wire/rows.ts',
      'export const first: Buffer = Buffer.alloc(1)\nexport interface Row { id: string }\n',
    )
    plant(
      'dist/src/wire/rows.d.ts',
      'export declare const first: Buffer;\nexport interface Row { id: string }\n',
    )
    plant('src/proof/check.ts', 'export const bytes = new Uint8Array(1)\n')
    plant(
      'src/client/clean.ts',
      "import type { Row } from '../wire/rows.js'\n\nexport const read = async (answer: Response): Promise<Row> => ({ id: await answer.text() })\n",
    )
  })

  it('pass where it uses what browsers have, and types of the wire', () => {
    const { status, stdout } = check()
    expect(stdout).toBe('')
    expect(status).toBe(0)
  })

  it.each([
    ['src/client/planted.ts', 'export const bytes = Buffer.alloc(1)\n', "'Buffer'"],
    ['src/client/planted.ts', 'export const home = process.env\n', "'process'"],
    ['src/client/planted.ts', "export { readFileSync } from 'node:fs'\n", "'node:fs'"],
    ['src/client/planted.ts', 'export const timer = setTimeout(() => {}, 1).unref()\n', "'unref'"],
    ['src/proof/planted.ts', 'export const bytes = Buffer.alloc(1)\n', "'Buffer'"],
    [
      'src/client/planted.ts',
      "import type { Row } from '../wire/rows.js'\n\nexport const id: Row['id'] = 1\n",
      "'number' is not assignable",
    ],
  ])('refuse in %s: %s', (path, code, named) => {
    plant(path, code)
    const { status, stdout } = check()
    expect(stdout).toContain(named)
    expect(stdout).toContain(path)
    expect(status).not.toBe(0)
  })
})

describe('the search for what only tests use', () => {
  const knip = resolve('node_modules/knip/bin/knip.js')
  const used = "import { used } from '../src/base/used.js'\n"

  beforeEach(() => {
    plantCopy('knip.json')
    plant('package.json', '{ "name": "planted", "version": "1.0.0", "type": "module" }')
    plant('tsconfig.json', '{ "compilerOptions": { "module": "nodenext" } }')
    symlinkSync(resolve('node_modules'), join(tree, 'node_modules'))
    plant('src/main.ts', "import { used } from './base/used.js'\n\nused()\n")
    plant('src/base/used.ts', 'export function used(): void {}\n')
    plant('test/used.test.ts', `${used}\nused()\n`)
  })

  it('passes what the program uses, and tests too', () => {
    const { status, stdout } = run(knip, '--no-progress', '--no-config-hints', '--production')
    expect(stdout).toBe('')
    expect(status).toBe(0)
  })

  it('finds a file and an export of the program that only a test uses', () => {
    plant('src/base/tested.ts', 'export const tested = 1\n')
    plant('src/base/used.ts', 'export function used(): void {}\nexport function testedOnly(): void {}\n')
    plant(
      'test/used.test.ts',
      "import { testedOnly, used } from '../src/base/used.js'\nimport { tested } from '../src/base/tested.js'\n\nused()\ntestedOnly()\nconsole.log(tested)\n",
    )
    expect(run(knip, '--no-progress', '--no-config-hints').stdout).toBe('')
    const { status, stdout } = run(knip, '--no-progress', '--no-config-hints', '--production')
    expect(stdout).toContain('src/base/tested.ts')
    expect(stdout).toContain('testedOnly')
    expect(status).toBe(1)
  })
})

describe('the generated documents', () => {
  beforeEach(() => {
    plantCopy('scripts/generate.mjs')
    plant(
      'scripts/performance/documents.mjs',
      "export const recordedPerformanceDocuments = () => [['docs/performance/writes.svg', '<svg/>']]\n",
    )
    plant('package.json', '{ "type": "module" }')
    plant('docs/openapi.json', '{}')
    plant(
      'dist/src/base/errors.js',
      "export const errorCatalogue = { not_found: { status: 404, title: 'No such' } }\n",
    )
    plant(
      'dist/src/settings/config.js',
      "export const settings = [{ name: 'SERVICE_PORT', default: 8787, description: 'Port', allowed: '0 to 65535' }]\n",
    )
    plant(
      'dist/src/http/openapi/document.js',
      "export const openApiDocument = () => ({ openapi: '3.1.0' })\n",
    )
    plant('dist/src/routes/routes.js', 'export const allRoutes = () => []\n')
  })

  it('are written, and then agree', () => {
    expect(run('scripts/generate.mjs').status).toBe(0)
    expect(readFileSync(join(tree, 'docs/errors.md'), 'utf8')).toContain('| `not_found` | 404 | No such |')
    expect(readFileSync(join(tree, 'docs/config.md'), 'utf8')).toContain('`SERVICE_PORT`')
    expect(readFileSync(join(tree, 'docs/performance/writes.svg'), 'utf8')).toBe('<svg/>')
    expect(run('scripts/generate.mjs', '--check').status).toBe(0)
  })

  it('are found to differ when one was changed by hand', () => {
    run('scripts/generate.mjs')
    plant('docs/errors.md', 'by hand\n')
    plant('docs/performance/writes.svg', 'by hand\n')
    const { status, stderr } = run('scripts/generate.mjs', '--check')
    expect(status).toBe(1)
    expect(stderr).toContain('docs/errors.md differs')
    expect(stderr).toContain('docs/performance/writes.svg differs')
    expect(stderr).not.toContain('docs/config.md differs')
  })
})

describe('the count of tests', () => {
  const report = (passed: number, failed: number, skipped: number) =>
    JSON.stringify({
      numPassedTests: passed,
      numFailedTests: failed,
      numPendingTests: skipped,
      numTodoTests: 0,
      testResults: [],
    })

  beforeEach(() => plantCopy('scripts/test-count.mjs'))

  const count = () => {
    const { status, stdout } = run('scripts/test-count.mjs', 'report.json')
    return { status, line: stdout.trimEnd() }
  }

  it('is one plain line', () => {
    plant('report.json', report(7, 0, 0))
    expect(count()).toEqual({ status: 0, line: '7 passed, 0 failed' })
  })

  it('tells what failed and what was skipped', () => {
    plant('report.json', report(7, 2, 1))
    expect(count()).toEqual({ status: 1, line: '7 passed, 2 failed, 1 skipped' })
  })

  it('counts a file that did not load as one failure', () => {
    const unloaded = {
      ...JSON.parse(report(7, 0, 0)),
      testResults: [{ status: 'failed', assertionResults: [] }],
    }
    plant('report.json', JSON.stringify(unloaded))
    const { status, line } = count()
    expect(status).toBe(1)
    expect(line.split('\n').at(-1)).toBe('7 passed, 1 failed')
  })

  it('counts a file whose hook failed as one failure', () => {
    const unhooked = {
      ...JSON.parse(report(7, 0, 2)),
      testResults: [
        {
          name: 'a.test.ts',
          status: 'failed',
          message: 'Hook timed out',
          assertionResults: [{ status: 'skipped' }],
        },
      ],
    }
    plant('report.json', JSON.stringify(unhooked))
    const { status, line } = count()
    expect(status).toBe(1)
    expect(line).toBe('FAILED a.test.ts: Hook timed out\n\n7 passed, 1 failed, 2 skipped')
  })

  it('names each test that failed, with the beginning of its message, before the count', () => {
    const failed = {
      ...JSON.parse(report(7, 1, 0)),
      testResults: [
        {
          name: 'test/one.test.ts',
          status: 'failed',
          assertionResults: [
            { status: 'passed', fullName: 'holds', failureMessages: [] },
            { status: 'failed', fullName: 'adds up', failureMessages: ['expected 3 to be 4\nat line 7'] },
          ],
        },
      ],
    }
    plant('report.json', JSON.stringify(failed))
    const { line } = count()
    expect(line.split('\n')).toEqual([
      'FAILED test/one.test.ts: adds up',
      'expected 3 to be 4',
      'at line 7',
      '',
      '7 passed, 1 failed',
    ])
  })

  const failing = (failures: number, message: string) => {
    const assertionResults = Array.from({ length: failures }, (_none, n) => ({
      status: 'failed',
      fullName: `adds up ${n}`,
      failureMessages: [message],
    }))
    const testResults = [{ name: 'a.test.ts', status: 'failed', assertionResults }]
    return JSON.stringify({ ...JSON.parse(report(7, failures, 0)), testResults })
  }
  const long = `AssertionError: ${'line\n'.repeat(1_000)}expected 3 to be 4\n    at file.ts:7\n    at other.ts`

  it('tells a message of some thousand characters whole, without the stack', () => {
    plant('report.json', failing(1, `${'line\n'.repeat(800)}\n    at file.ts:7`))
    expect(count().line).toBe(`FAILED a.test.ts: adds up 0\n${'line\n'.repeat(800)}\n7 passed, 1 failed`)
  })

  it('leaves out the middle of a longer one', () => {
    plant('report.json', failing(1, long))
    const { line } = count()
    expect(line.length).toBeGreaterThan(4_200)
    expect(line.length).toBeLessThan(4_300)
    expect(line).toMatch(/^FAILED a\.test\.ts: adds up 0\nAssertionError: line\n/)
    expect(line).toMatch(/\nexpected 3 to be 4\n\n7 passed, 1 failed$/)
  })

  it.each([3, 14])('shares the room among %i failures, each with its beginning and end', (failures) => {
    plant('report.json', failing(failures, long))
    const { line } = count()
    expect(line.length).toBeLessThan(4_400)
    expect(line.match(/^FAILED a\.test\.ts: adds up \d+\nAssertionError: line\n/gm)).toHaveLength(failures)
    expect(line.match(/\nexpected 3 to be 4\n\n/g)).toHaveLength(failures)
  })

  it('counts those of which too little could be told', () => {
    plant('report.json', failing(20, long))
    const { line } = count()
    expect(line.match(/^FAILED a\.test\.ts: /gm)).toHaveLength(14)
    expect(line).toMatch(/\nFAILED 6 more\n\n7 passed, 20 failed$/)
  })

  it('breaks long lines, and loses nothing of them', () => {
    plant('report.json', failing(1, `first ${'x'.repeat(2_000)} last`))
    const { line } = count()
    expect(Math.max(...line.split('\n').map(({ length }) => length))).toBe(900)
    expect(line.replaceAll('\n', '')).toContain(`first ${'x'.repeat(2_000)} last`)
  })

  it('says of a test that ran out of time that it did', () => {
    symlinkSync(resolve('node_modules'), join(tree, 'node_modules'))
    const lines = ["import { it } from 'vitest'", "it('waits', () => new Promise(() => {}), 1_100)"]
    plant('waits.test.mjs', lines.join('\n'))
    run(resolve('node_modules/vitest/vitest.mjs'), 'run', '--reporter=json', '--outputFile=report.json')
    expect(count().line.split('\n')[1]).toBe('Error: ran out of time after 1 s')
  })

  it('fails when nothing ran', () => {
    expect(count()).toEqual({ status: 1, line: '0 passed, 0 failed' })
  })

  it('is the sum of several runs, and fails when one of them failed or ran nothing', () => {
    plant('whole.json', report(7, 0, 1))
    plant('more.json', report(3, 0, 0))
    plant('failed.json', report(2, 1, 0))
    const of = (...names: string[]) => {
      const { status, stdout } = run('scripts/test-count.mjs', ...names)
      return [status, stdout.trimEnd()]
    }
    expect(of('whole.json', 'more.json')).toEqual([0, '10 passed, 0 failed, 1 skipped'])
    expect(of('whole.json', 'failed.json')).toEqual([1, '9 passed, 1 failed, 1 skipped'])
    expect(of('whole.json', 'none.json', 'more.json')).toEqual([1, '10 passed, 0 failed, 1 skipped'])
  })
})
