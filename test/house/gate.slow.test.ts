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

// One planted fault for each tool of the gate except the linter, because a step that cannot fail checks
// nothing.

const knip = [resolve('node_modules/knip/bin/knip.js'), '--no-progress', '--no-config-hints']
const tsc = resolve('node_modules/typescript/bin/tsc')

let tree: string

beforeEach(() => {
  tree = mkdtempSync(join(tmpdir(), 'gate-'))
  symlinkSync(resolve('node_modules'), join(tree, 'node_modules'))
  plant('package.json', '{ "name": "planted", "version": "1.0.0", "type": "module" }')
})

afterEach(() => rmSync(tree, { recursive: true, force: true }))

function plant(path: string, text: string): void {
  mkdirSync(dirname(join(tree, path)), { recursive: true })
  writeFileSync(join(tree, path), text)
}

function plantCopies(...paths: string[]): void {
  for (const path of paths) {
    plant(path, '')
    copyFileSync(path, join(tree, path))
  }
}

const run = (...words: string[]) => spawnSync(process.execPath, words, { cwd: tree, encoding: 'utf8' })
/** The output of a tool and its exit code. */
const outcome = (...words: string[]) => {
  const { status, stdout } = run(...words)
  return { status, stdout }
}

describe('knip', () => {
  const passes = { status: 0, stdout: '' }

  beforeEach(() => {
    plantCopies('knip.json')
    plant('tsconfig.json', '{ "compilerOptions": { "module": "nodenext" } }')
    plant('src/main.ts', "import { used } from './base/used.js'\n\nused()\n")
    plant('src/base/used.ts', 'export function used(): void {}\n')
  })

  it('finds a file and an export without importers', () => {
    expect(outcome(...knip)).toEqual(passes)
    plant('src/base/orphan.ts', 'export const orphan = 1\n')
    plant('src/base/used.ts', 'export function used(): void {}\nexport function unusedExport(): void {}\n')
    const { status, stdout } = run(...knip)
    expect([status, stdout]).toEqual([1, expect.stringMatching(/src\/base\/orphan\.ts[^]*unusedExport/)])
  })

  it('finds code that only a test uses', () => {
    plant('src/base/tested.ts', 'export const tested = 1\n')
    plant('test/tested.test.ts', "import { tested } from '../src/base/tested.js'\n\nconsole.log(tested)\n")
    expect(outcome(...knip)).toEqual(passes)
    const { status, stdout } = run(...knip, '--production')
    expect([status, stdout]).toEqual([1, expect.stringContaining('src/base/tested.ts')])
  })
})

describe('the compiler', () => {
  const compile = (project: string) => outcome(tsc, '-p', project, '--noEmit')

  it.each([
    ['an index that may be missing', 'export const first = (list: number[]): number => list[0]\n'],
    ['unchecked JSON', 'export const read = (text: string): { id: string } => JSON.parse(text)\n'],
    [
      'an unchecked answer',
      'export const read = async (answer: Response): Promise<{ id: string }> => answer.json()\n',
    ],
  ])('rejects %s in the program', (_, code) => {
    plantCopies('tsconfig.json', 'src/base/unknown-json.d.ts')
    plant('src/base/clean.ts', 'export const read = (text: string): unknown => JSON.parse(text)\n')
    expect(compile('tsconfig.json')).toEqual({ status: 0, stdout: '' })
    plant('src/base/planted.ts', code)
    const { status, stdout } = compile('tsconfig.json')
    expect([status === 0, stdout]).toEqual([false, expect.stringMatching(/planted\.ts[^]*not assignable/)])
  })

  it.each(["export { readFileSync } from 'node:fs'\n", 'export const home = process.env\n'])(
    'rejects Node-only code in the client: %s',
    (code) => {
      plantCopies('tsconfig.json', 'tsconfig.client.json', 'tsconfig.declared.json')
      plant('src/proof/check.ts', 'export const bytes = new Uint8Array(1)\n')
      plant('src/client/clean.ts', 'export const read = (answer: Response) => answer.text()\n')
      expect(compile('tsconfig.client.json')).toEqual({ status: 0, stdout: '' })
      plant('src/client/planted.ts', code)
      const { status, stdout } = compile('tsconfig.client.json')
      expect([status === 0, stdout]).toEqual([false, expect.stringContaining('src/client/planted.ts')])
    },
  )
})

describe('the check of generated documents', () => {
  it('finds a manually changed document', () => {
    plantCopies('scripts/generate.mjs', 'scripts/markdown-table.mjs')
    plant('scripts/performance/documents.mjs', 'export const recordedPerformanceDocuments = () => []\n')
    plant('scripts/campaign/document.mjs', 'export const campaignDocuments = () => []\n')
    plant('docs/openapi.json', '{}')
    plant('dist/src/base/errors.js', "export const errorCatalogue = { a: { status: 404, title: 'b' } }\n")
    plant('dist/src/settings/config.js', 'export const settings = []\n')
    plant('dist/src/wire/api-keys.js', 'export const scopes = []\nexport const scopeDescriptions = {}\n')
    plant('dist/src/front/http/openapi/document.js', 'export const openApiDocument = () => ({})\n')
    plant('dist/src/front/routes/routes.js', 'export const allRoutes = () => []\n')
    expect(run('scripts/generate.mjs').status).toBe(0)
    expect(run('scripts/generate.mjs', '--check').status).toBe(0)
    expect(readFileSync(join(tree, 'docs/errors.md'), 'utf8')).toContain('| `a`  | 404    | b       |')
    plant('docs/errors.md', 'by hand\n')
    const { status, stderr } = run('scripts/generate.mjs', '--check')
    expect([status, stderr]).toEqual([1, expect.stringContaining('docs/errors.md differs')])
    expect(stderr).not.toContain('docs/config.md differs')
  })
})

describe('the count of tests', () => {
  const test = (status: string, ...failureMessages: string[]) => ({
    status,
    fullName: 'adds up',
    failureMessages,
  })
  const file = (name: string, secs: number, ...assertionResults: object[]) => ({
    name: join(tree, name),
    status: assertionResults.length === 0 ? 'failed' : 'passed',
    message: 'cannot be loaded',
    startTime: 0,
    endTime: secs * 1_000,
    assertionResults,
  })
  const report = (...testResults: object[]) => JSON.stringify({ numPassedTests: 1, testResults })
  const count = (...words: string[]) => {
    const { status, stdout } = run('scripts/test-count.mjs', ...words)
    return { status, lines: stdout.trimEnd().split('\n') }
  }

  beforeEach(() => {
    plantCopies('scripts/test-count.mjs')
    plant('good.json', report(file('test/a.test.ts', 3, test('passed'), test('skipped'))))
    plant(
      'broken.json',
      report(file('test/e2e/b.test.ts', 9, test('failed', 'expected 3 to be 4\n    at line 7'))),
    )
    plant('unloaded.json', report(file('test/c.test.ts', 1)))
  })

  it('prints the slowest files and the totals of the reports', () => {
    expect(count('good.json', 'good.json')).toEqual({
      status: 0,
      lines: ['    3 s  test/a.test.ts', '    3 s  test/a.test.ts', '2 passed, 0 failed, 2 skipped'],
    })
  })

  it('fails with the message of each failed test, without its stack', () => {
    const { status, lines } = count('good.json', 'broken.json')
    expect(status).toBe(1)
    expect(lines.slice(0, 3)).toEqual(['FAILED test/e2e/b.test.ts: adds up', 'expected 3 to be 4', ''])
    expect(lines.at(-1)).toBe('1 passed, 1 failed, 1 skipped')
  })

  it('reports a test as unsteady if its second attempt passed, and as failed where that must not be', () => {
    const secondPasses =
      "import { expect, it } from 'vitest'\nlet a = 0\nit('adds up', () => expect(++a).toBe(2))"
    plant('test/e2e/b.test.ts', secondPasses)
    const vitest = (...words: string[]) => run(resolve('node_modules/vitest/vitest.mjs'), 'run', ...words)
    expect(vitest('--retry=1', '--reporter=json', '--outputFile=repaired.json').status).toBe(0)
    const { status, lines } = count('good.json', 'repaired.json')
    expect([status, ...lines.slice(-2)]).toEqual([
      0,
      'unsteady: test/e2e/b.test.ts: adds up',
      '2 passed, 0 failed, 1 skipped',
    ])
    plant('elsewhere.json', report(file('test/a.test.ts', 9, test('passed', 'expected 3 to be 4'))))
    const elsewhere = count('good.json', 'elsewhere.json')
    expect([elsewhere.status, elsewhere.lines.at(-1)]).toEqual([1, '1 passed, 1 failed, 1 skipped'])
  })

  it('fails for a file that did not load, a missing report and a report without tests', () => {
    plant('empty.json', JSON.stringify({ numPassedTests: 0, testResults: [] }))
    for (const other of ['unloaded.json', 'missing.json', 'empty.json']) {
      const { status, lines } = count('good.json', other)
      expect([other, status, lines.at(-1)]).toEqual([other, 1, '1 passed, 1 failed, 1 skipped'])
    }
  })
})
