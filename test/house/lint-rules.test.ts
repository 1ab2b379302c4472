import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

// oxlint silently ignores an unknown rule and a glob without matches. So each rule gets a file that violates
// it, all in one tree with a copy of the configuration, in one run.

interface Planted {
  path: string
  code: string
}
interface Violation extends Planted {
  rule: string
}

const imports = (specifier: string) => `import { thing } from '${specifier}'\n\nthing()\n`
const restricted = 'eslint(no-restricted-imports)'

const restrictedPackages: { name: string; door: string; elsewhere: string[] }[] = [
  {
    name: 'uWebSockets.js',
    door: 'src/front/engine/uws.ts',
    elsewhere: [
      'src/front/http/request.ts',
      'src/front/engine/node.ts',
      'src/front/routes/uws.ts',
      'src/main.ts',
      'workers/uws.ts',
    ],
  },
  {
    name: 'lmdb',
    door: 'workers/store/open-environment.ts',
    elsewhere: [
      'workers/shard/shard.ts',
      'workers/shard-thread.ts',
      'workers/commands/lmdb.ts',
      'src/cli/lmdb.ts',
      'src/front/http/lmdb.ts',
    ],
  },
  {
    name: 'sodium-native',
    door: 'src/strand/keys.ts',
    elsewhere: ['src/strand/sodium.ts', 'src/auth/sodium.ts', 'workers/sodium.ts', 'workers/store/sodium.ts'],
  },
]

const postgres = ['pg', 'pg-copy-streams'].map((name) => ({
  name,
  door: `src/outbound/${name}.ts`,
  elsewhere: [
    `src/front/http/${name}.ts`,
    `src/cluster/node/${name}.ts`,
    `src/dispatch/${name}.ts`,
    `workers/${name}.ts`,
    `workers/sink/${name}.ts`,
  ],
}))

const parentPort = "import { parentPort } from 'node:worker_threads'\n\nparentPort?.close()\n"
const longFile = `${'export {}\n'.repeat(401)}`
const longFunction = `export function long(): void {\n${'  void 0\n'.repeat(70)}}\n`
const fourParameters =
  'export function sum(a: number, b: number, c: number, d: number) {\n  return a + b + c + d\n}\n'
const assertion = 'export const text = (value: unknown) => value as string\n'
const environment = "export const home = process.env['HOME']\n"

const setsHtml = (member: string) =>
  `export const show = (place: Element) => {\n  place.${member} = '<b>'\n}\n`

const terminates = 'export const end = (thread: { terminate(): void }) => thread.terminate()\n'

const element = 'export const Shown = () => <p>text</p>\n'

/** [name of a .tsx file, its content, the violated rule]. */
const inComponents: [string, string, string][] = [
  ['inner', `${element}${setsHtml('innerHTML')}`, 'eslint(no-restricted-properties)'],
  ['long-file', longFile, 'eslint(max-lines)'],
  [
    'long-function',
    `export function Long() {\n${'  void 0\n'.repeat(70)}  return <p>text</p>\n}\n`,
    'eslint(max-lines-per-function)',
  ],
  ['parameters', fourParameters, 'eslint(max-params)'],
  ['camelCase', element, 'unicorn(filename-case)'],
  ['any', `${element}export const value: any = 1\n`, 'typescript(no-explicit-any)'],
  ['assertion', `${element}${assertion}`, 'typescript(consistent-type-assertions)'],
  ['default', 'export default () => <p>text</p>\n', 'import(no-default-export)'],
  ['barrel', "export * from './text.js'\n", 'oxc(no-barrel-file)'],
  ['print', `${element}console.log('x')\n`, 'eslint(no-console)'],
  ['environment', `${element}${environment}`, 'node(no-process-env)'],
  ['equals', 'export const Same = ({ a }: { a: number }) => <p>{a == 1}</p>\n', 'eslint(eqeqeq)'],
  ['var', 'export var one = <p>text</p>\n', 'eslint(no-var)'],
  ['let', 'let one = <p>text</p>\nexport { one }\n', 'eslint(prefer-const)'],
  ['unused', `const one = <p>text</p>\n${element}`, 'eslint(no-unused-vars)'],
  [
    'value-import',
    "import { Plain } from './plain.js'\n\nexport const Shown = ({ of }: { of: Plain }) => <p>{of}</p>\n",
    'typescript(consistent-type-imports)',
  ],
  [
    'hooks',
    "import { useState } from 'preact/hooks'\n\nexport function Shown({ is }: { is: boolean }) {\n" +
      '  if (is) useState(1)\n  return <p>text</p>\n}\n',
    'react-hooks(rules-of-hooks)',
  ],
]

const violations: Violation[] = [
  ...[...restrictedPackages, ...postgres].flatMap(({ name, elsewhere }) =>
    elsewhere.map((path) => ({ path, code: imports(name), rule: restricted })),
  ),
  { path: 'workers/sink/port.ts', code: parentPort, rule: restricted },
  { path: 'src/client/package.ts', code: imports('msgpackr'), rule: restricted },
  { path: 'src/client/node.ts', code: imports('node:fs'), rule: restricted },
  { path: 'src/console/parts/package.tsx', code: imports('react'), rule: restricted },
  { path: 'src/console/node.ts', code: imports('node:fs'), rule: restricted },
  { path: 'src/proof/package.ts', code: imports('lru-cache'), rule: restricted },
  { path: 'src/proof/node.ts', code: imports('node:crypto'), rule: restricted },
  { path: 'src/dispatch/port.ts', code: parentPort, rule: restricted },
  { path: 'workers/store/port.ts', code: parentPort, rule: restricted },
  { path: 'src/base/any.ts', code: 'export const value: any = 1\n', rule: 'typescript(no-explicit-any)' },
  { path: 'src/auth/long-file.ts', code: longFile, rule: 'eslint(max-lines)' },
  { path: 'workers/long-file.ts', code: longFile, rule: 'eslint(max-lines)' },
  { path: 'bench/long-file.ts', code: longFile, rule: 'eslint(max-lines)' },
  { path: 'src/auth/long-function.ts', code: longFunction, rule: 'eslint(max-lines-per-function)' },
  { path: 'workers/long-function.ts', code: longFunction, rule: 'eslint(max-lines-per-function)' },
  { path: 'src/auth/parameters.ts', code: fourParameters, rule: 'eslint(max-params)' },
  { path: 'test/parameters.ts', code: fourParameters, rule: 'eslint(max-params)' },
  { path: 'src/auth/camelCase.ts', code: 'export const one = 1\n', rule: 'unicorn(filename-case)' },
  { path: 'src/auth/default.ts', code: 'export default 1\n', rule: 'import(no-default-export)' },
  { path: 'src/auth/barrel.ts', code: "export * from './plain.js'\n", rule: 'oxc(no-barrel-file)' },
  { path: 'src/auth/print.ts', code: "console.log('x')\n", rule: 'eslint(no-console)' },
  { path: 'src/main-print.ts', code: "console.log('x')\n", rule: 'eslint(no-console)' },
  { path: 'workers/print.ts', code: "console.log('x')\n", rule: 'eslint(no-console)' },
  { path: 'src/front/http/environment.ts', code: environment, rule: 'node(no-process-env)' },
  { path: 'src/cli/environment.ts', code: environment, rule: 'node(no-process-env)' },
  { path: 'workers/environment.ts', code: environment, rule: 'node(no-process-env)' },
  { path: 'src/auth/assertion.ts', code: assertion, rule: 'typescript(consistent-type-assertions)' },
  { path: 'src/protocol/assertion.ts', code: assertion, rule: 'typescript(consistent-type-assertions)' },
  { path: 'workers/assertion.ts', code: assertion, rule: 'typescript(consistent-type-assertions)' },
  { path: 'src/dispatch/terminate.ts', code: terminates, rule: 'eslint(no-restricted-properties)' },
  { path: 'workers/terminate.ts', code: terminates, rule: 'eslint(no-restricted-properties)' },
  ...inComponents.map(([name, code, rule]) => ({ path: `src/console/parts/${name}.tsx`, code, rule })),
  { path: 'src/console/inner.ts', code: setsHtml('innerHTML'), rule: 'eslint(no-restricted-properties)' },
  {
    path: 'src/console/parts/outer.ts',
    code: setsHtml('outerHTML'),
    rule: 'eslint(no-restricted-properties)',
  },
  {
    path: 'src/console/danger.tsx',
    code: "export const bold = <p dangerouslySetInnerHTML={{ __html: '<b>' }} />\n",
    rule: 'react(no-danger)',
  },
  {
    path: 'src/auth/cycle.ts',
    code: "import { two } from './cycle-two.js'\n\nexport const one = () => two\n",
    rule: 'import(no-cycle)',
  },
  {
    path: 'src/auth/cycle-two.ts',
    code: "import { one } from './cycle.js'\n\nexport const two = () => one\n",
    rule: 'import(no-cycle)',
  },
  {
    path: 'src/auth/value-import.ts',
    code: "import { Plain } from './plain.js'\n\nexport const of = (value: Plain) => value\n",
    rule: 'typescript(consistent-type-imports)',
  },
  { path: 'src/auth/bare-node.ts', code: imports('fs'), rule: 'unicorn(prefer-node-protocol)' },
  {
    path: 'src/auth/equals.ts',
    code: 'export const same = (a: number, b: number) => a == b\n',
    rule: 'eslint(eqeqeq)',
  },
  { path: 'src/auth/var.ts', code: 'export var one = 1\n', rule: 'eslint(no-var)' },
  { path: 'src/auth/let.ts', code: 'let one = 1\nexport { one }\n', rule: 'eslint(prefer-const)' },
  { path: 'src/auth/unused.ts', code: 'const one = 1\nexport {}\n', rule: 'eslint(no-unused-vars)' },
]

const clean: Planted[] = [
  ...[...restrictedPackages, ...postgres].map(({ name, door }) => ({ path: door, code: imports(name) })),
  { path: 'workers/password.ts', code: parentPort },
  { path: 'src/client/types.ts', code: imports('../proof/x.js') },
  { path: 'src/client/subscription.ts', code: imports('eventsource-parser') },
  { path: 'src/console/page.tsx', code: imports('preact/hooks') },
  { path: 'src/console/signal.ts', code: imports('@preact/signals') },
  { path: 'src/proof/node/hashing.ts', code: imports('node:crypto') },
  { path: 'src/client/index.ts', code: "export * from './types.js'\n" },
  { path: 'src/dispatch/threads/thread-watch.ts', code: terminates },
  { path: 'src/console/terminate.ts', code: terminates },
  { path: 'src/console/text.tsx', code: 'export const bold = <p>plain</p>\n' },
  { path: 'src/settings/config.ts', code: environment },
  { path: 'src/cli/print.ts', code: "console.log('x')\n" },
  { path: 'src/wire/assertion.ts', code: assertion },
  { path: 'src/protocol/frame.ts', code: assertion },
  { path: 'src/auth/constant.ts', code: 'export const pair = [1, 2] as const\n' },
  { path: 'src/auth/plain.ts', code: 'export type Plain = number\n' },
  { path: 'test/long-function.test.ts', code: longFunction },
  { path: 'vitest.config.ts', code: 'export default {}\n' },
]

interface Report {
  diagnostics: { code: string; filename: string }[]
}

let found: Map<string, Set<string>>
let tree: string
let exitCode: number | null

beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), 'house-'))
  copyFileSync('oxlint.config.mjs', join(tree, 'oxlint.config.mjs'))
  for (const { path, code } of [...violations, ...clean]) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), code)
  }
  const program = join(dirname(createRequire(import.meta.url).resolve('oxlint/package.json')), 'bin/oxlint')
  const parts = [program, '-c', 'oxlint.config.mjs', '--deny-warnings', '-f', 'json', '.']
  const run = spawnSync(process.execPath, parts, { cwd: tree, encoding: 'utf8', maxBuffer: 64 << 20 })
  exitCode = run.status
  const report: Report = JSON.parse(run.stdout)
  found = new Map()
  for (const { filename, code } of report.diagnostics) {
    const path = filename.replaceAll('\\', '/').replace(/^\.\//, '')
    const codes = found.get(path) ?? new Set()
    found.set(path, codes.add(code))
  }
})

afterAll(() => rmSync(tree, { recursive: true, force: true }))

describe('the lint rules', () => {
  it('have unique planted files', () => {
    const paths = [...violations, ...clean].map(({ path }) => path)
    expect(paths.length).toBe(new Set(paths).size)
  })

  it('make the linter exit with 1', () => {
    expect(exitCode).toBe(1)
  })

  it.each(violations)('report $rule in $path', ({ path, rule }) => {
    expect([...(found.get(path) ?? [])]).toContain(rule)
  })

  it.each(clean)('accept $path', ({ path }) => {
    expect([...(found.get(path) ?? [])]).toEqual([])
  })
})
