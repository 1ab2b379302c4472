import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { layers, rooms } from '../../oxlint.config.mjs'

// oxlint reports a rule that it does not know, or a glob that matches nothing, by finding nothing. So each rule gets a
// file that breaks it, all of them in one tree beside a copy of the configuration, and one run over that tree.

interface Planted {
  path: string
  code: string
}
interface Violation extends Planted {
  rule: string
}

const imports = (specifier: string) => `import { thing } from '${specifier}'\n\nthing()\n`
const importsType = (specifier: string) =>
  `import type { Thing } from '${specifier}'\n\nexport type Other = Thing\n`
const restricted = 'eslint(no-restricted-imports)'

/** [a folder, what it must not import]: the table of layers in oxlint.config.mjs, seen from its other side. */
const forbiddenImports: [string, string[]][] = [
  ['src/base', ['../strand/x.js', '../wire/x.js', '../settings/x.js', '../main.js', '../../workers/x.js']],
  ['src/strand', ['../auth/x.js', '../wire/x.js', '../protocol/x.js', '../http/x.js', '../settings/x.js']],
  [
    'src/proof',
    ['../auth/x.js', '../base/x.js', '../strand/keys.js', './node/x.js', 'node:crypto', 'lru-cache'],
  ],
  ['src/proof/node', ['../../auth/x.js', '../../client/x.js', '../../http/x.js', '../../../workers/x.js']],
  ['src/auth', ['../wire/x.js', '../protocol/x.js', '../routes/x.js', '../../workers/x.js']],
  ['src/wire', ['../auth/x.js', '../protocol/x.js', '../routes/x.js', '../http/x.js']],
  ['src/protocol', ['../routes/x.js', '../wire/x.js', '../dispatch/x.js', '../../workers/x.js']],
  ['src/outbound', ['../strand/x.js', '../protocol/x.js', '../http/x.js', '../settings/x.js']],
  ['src/dispatch', ['../strand/x.js', '../wire/x.js', '../http/x.js', '../../workers/x.js']],
  ['src/cluster/members', ['../x.js', '../deeper/x.js', '../../strand/x.js', '../../../workers/x.js']],
  ['src/front/routes', ['../dispatch/x.js', '../http/x.js', '../cli/x.js', '../../workers/x.js']],
  ['src/routes/deeper', ['../../dispatch/x.js', '../../http/x.js', '../../../workers/x.js']],
  ['src/front/http', ['../outbound/x.js', '../client/x.js', '../cli/x.js', '../main.js', '../../workers/x.js']],
  ['src/front/door', ['../http/x.js', '../wire/x.js', '../routes/x.js']],
  ['src/front/http/ingest', ['../streams/x.js', '../openapi/x.js', '../../outbound/x.js']],
  ['src/front/http/import', ['../ingest/x.js']],
  ['src/front/http/openapi', ['../auth/x.js', '../../server/x.js']],
  ['src/http/streams', ['../ingest/x.js']],
  ['src/front/http/auth', ['../streams/x.js']],
  ['src/settings', ['../http/x.js', '../data-directory/x.js', '../../workers/x.js']],
  ['src/data', ['../backup/x.js', '../dispatch/x.js', '../http/x.js']],
  ['src/data/backup', ['../http/x.js', '../settings/x.js', '../server/x.js']],
  ['src/server', ['../cli/x.js', '../client/x.js', '../../workers/x.js', '../main.js']],
  ['src/cli', ['../routes/x.js', '../http/x.js', '../server/x.js']],
  [
    'src/client',
    ['../wire/x.js', '../base/x.js', '../strand/x.js', '../proof/node/x.js', 'msgpackr', 'node:fs'],
  ],
  ['src/console', ['../wire/x.js', '../base/x.js', '../http/x.js', '../proof/node/x.js', 'react', 'node:fs']],
  ['src/console/deeper', ['../../wire/x.js', '../../routes/x.js', '../../../workers/x.js']],
  ['src/console/parts', ['../shell/x.js', '../proof/x.js', '../records/x.js', '../../wire/x.js', 'react']],
  ['src/console/shell', ['../agents/x.js', '../keys/x.js', '../records/x.js', '../../http/x.js']],
  ['src/console/palette', ['../records/x.js', '../users/x.js']],
  ['src/console/proof', ['../records/x.js', '../shell/x.js', '../erasing/x.js', '../../proof/node/x.js']],
  ['src/console/records', ['../agents/x.js', '../audit/x.js', '../rules/x.js']],
  ['src/console/erasing', ['../agent-changes/x.js', '../proposals/x.js', '../rules/x.js']],
  ['src/console/agents', ['../audit/x.js', '../proposals/x.js', '../users/x.js']],
  ['src/console/agent-changes', ['../agents/x.js', '../erasing/x.js', '../records/x.js']],
  ['src/console/graph', ['../agents/x.js', '../time/x.js', '../proof/x.js']],
  ['src/console/rules', ['../proposals/x.js', '../erasing/x.js', '../agents/x.js']],
  ['src/console/time', ['../agents/x.js', '../graph/x.js']],
  ['src/console/api', ['../records/x.js', '../proof/x.js', '../start/x.js']],
  ['src/console/audit', ['../agents/x.js', '../users/x.js', '../proof/x.js']],
  ['src/console/health', ['../home/x.js', '../records/x.js']],
  ['src/console/home', ['../live/x.js', '../keys/x.js', '../proof/x.js']],
  ['src/console/keys', ['../agents/x.js', '../users/x.js', '../palette/x.js']],
  ['src/console/live', ['../home/x.js', '../proof/x.js']],
  ['src/console/log', ['../start/x.js', '../audit/x.js', '../proof/x.js']],
  ['src/console/proposals', ['../agent-changes/x.js', '../rules/x.js', '../erasing/x.js']],
  ['src/console/start', ['../log/x.js', '../agents/x.js', '../palette/x.js']],
  ['src/console/users', ['../agents/x.js', '../keys/x.js', '../live/x.js']],
  ['workers', ['../src/dispatch/x.js', '../src/http/x.js', '../src/routes/x.js', '../src/outbound/x.js']],
  ['workers/commands', ['../../src/http/x.js', '../../src/client/x.js', '../../src/settings/config.js']],
  ['workers/store', ['../../src/http/x.js', '../../src/dispatch/x.js', '../shard/x.js', '../commands/x.js']],
  ['workers/store/check', ['../../shard/x.js']],
  ['workers/shard', ['../reshard/x.js', '../import/x.js']],
  ['workers/sink', ['../shard/x.js', '../../src/http/x.js']],
  ['workers/auth', ['../commands/x.js']],
  ['workers/import', ['../commands/x.js']],
  ['workers/mutations', ['../commands/x.js', '../import/x.js']],
  ['workers/reshard', ['../shard/x.js']],
]

/** [a folder, what it may import, or what its types may]: the rule must not be so wide that it forbids everything. */
const allowedImports: [string, string[]][] = [
  ['src/base', ['./x.js', 'pino', 'node:fs']],
  ['src/strand', ['../base/x.js', './x.js']],
  ['src/strand/deeper', ['../x.js', '../../base/x.js']],
  ['src/proof', ['../strand/header.js', '../strand/strand-export.js', './x.js']],
  ['src/proof/node', ['../x.js', '../../strand/keys.js', '../../base/x.js', 'node:crypto']],
  ['src/client', ['../proof/x.js', './x.js']],
  [
    'src/console',
    ['../client/x.js', '../proof/x.js', '../strand/x.js', './x.js', 'preact/hooks', '@preact/signals'],
  ],
  ['src/console/deeper', ['../../client/x.js', '../x.js']],
  ['src/console/parts', ['./x.js', '../route.js', '../../client/x.js', '../../proof/x.js', 'preact/hooks']],
  ['src/console/proof', ['../parts/x.js', '../storage.js', '../../proof/x.js', '../../client/x.js']],
  ['src/console/records', ['../erasing/x.js', '../proof/x.js', '../parts/x.js', '../shell/x.js']],
  ['src/console/agents', ['../time/x.js', '../graph/x.js', '../records/x.js']],
  ['src/console/users', ['../audit/x.js', '../../client/x.js']],
  ['src/cluster/members', ['./x.js', '../../base/x.js', '../../protocol/x.js']],
  ['src/dispatch', ['../base/x.js', '../protocol/x.js', 'node:worker_threads']],
  ['src/front/routes', ['../wire/x.js', '../outbound/x.js', '../protocol/x.js']],
  ['src/front/http', ['../routes/x.js', '../dispatch/x.js', '../settings/x.js', './streams/x.js']],
  ['src/cli', ['../backup/x.js', '../../workers/x.js', '../settings/x.js', '../main.js']],
  ['src/settings', ['../auth/x.js', '../base/x.js']],
  ['src/data', ['../settings/x.js', '../strand/x.js']],
  ['src/data/backup', ['../data-directory/x.js', '../dispatch/x.js']],
  ['src/server', ['../http/streams/x.js', '../settings/x.js', '../outbound/x.js']],
  ['src/front/door', ['./x.js', '../base/x.js']],
  ['src/http/streams', ['../auth/x.js', '../../auth/x.js', './x.js']],
  ['workers/shard', ['../commands/x.js', '../store/x.js']],
  ['workers/commands/auth', ['../../auth/x.js', '../x.js']],
  ['workers', ['./store/x.js', '../src/wire/x.js', '../src/protocol/x.js']],
  ['workers/commands', ['../store/x.js', '../../src/strand/x.js']],
]

/** Most files of the console show elements, so its violations are planted in such files. */
const endingIn = (folder: string) => (/^src\/console\b/.test(folder) ? 'tsx' : 'ts')

const doors: { name: string; door: string; elsewhere: string[] }[] = [
  {
    name: 'uWebSockets.js',
    door: 'src/front/door/uws.ts',
    elsewhere: [
      'src/http/request.ts',
      'src/front/door/node.ts',
      'src/routes/uws.ts',
      'src/main.ts',
      'workers/uws.ts',
    ],
  },
  {
    name: 'lmdb',
    door: 'workers/store/environment.ts',
    elsewhere: [
      'workers/shard/shard.ts',
      'workers/shard-thread.ts',
      'workers/commands/lmdb.ts',
      'src/cli/lmdb.ts',
      'src/http/lmdb.ts',
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

/** [the name of a file of elements, what it holds, the rule that it breaks]. */
const inElements: [string, string, string][] = [
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
  ...forbiddenImports.flatMap(([folder, specifiers]) =>
    specifiers.map((specifier, index) => ({
      path: `${folder}/forbidden-${index}.${endingIn(folder)}`,
      code: imports(specifier),
      rule: restricted,
    })),
  ),
  ...[...doors, ...postgres].flatMap(({ name, elsewhere }) =>
    elsewhere.map((path) => ({ path, code: imports(name), rule: restricted })),
  ),
  { path: 'workers/sink/http.ts', code: imports('../../src/http/x.js'), rule: restricted },
  { path: 'workers/sink/port.ts', code: parentPort, rule: restricted },
  { path: 'workers/port.ts', code: parentPort, rule: restricted },
  { path: 'src/dispatch/port.ts', code: parentPort, rule: restricted },
  { path: 'workers/store/port.ts', code: parentPort, rule: restricted },
  { path: 'src/base/config-type.ts', code: importsType('../settings/config.js'), rule: restricted },
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
  { path: 'src/http/environment.ts', code: environment, rule: 'node(no-process-env)' },
  { path: 'src/cli/environment.ts', code: environment, rule: 'node(no-process-env)' },
  { path: 'workers/environment.ts', code: environment, rule: 'node(no-process-env)' },
  { path: 'src/auth/assertion.ts', code: assertion, rule: 'typescript(consistent-type-assertions)' },
  { path: 'src/protocol/assertion.ts', code: assertion, rule: 'typescript(consistent-type-assertions)' },
  { path: 'workers/assertion.ts', code: assertion, rule: 'typescript(consistent-type-assertions)' },
  { path: 'src/dispatch/terminate.ts', code: terminates, rule: 'eslint(no-restricted-properties)' },
  { path: 'workers/terminate.ts', code: terminates, rule: 'eslint(no-restricted-properties)' },
  ...inElements.map(([name, code, rule]) => ({ path: `src/console/parts/${name}.tsx`, code, rule })),
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
  ...allowedImports.flatMap(([folder, specifiers]) =>
    specifiers.map((specifier, index) => ({
      path: `${folder}/allowed-${index}.${endingIn(folder)}`,
      code: imports(specifier),
    })),
  ),
  ...[...doors, ...postgres].map(({ name, door }) => ({ path: door, code: imports(name) })),
  { path: 'workers/password.ts', code: parentPort },
  { path: 'workers/sink.ts', code: imports('../src/outbound/x.js') + parentPort },
  { path: 'workers/front.ts', code: imports('../src/server/x.js') + parentPort },
  { path: 'workers/sink/outbound.ts', code: imports('../../src/outbound/x.js') },
  { path: 'src/client/types.ts', code: importsType('../wire/x.js') },
  { path: 'src/client/index.ts', code: "export * from './types.js'\n" },
  { path: 'src/console/wire-types.ts', code: importsType('../wire/x.js') },
  { path: 'src/dispatch/threads/thread-watch.ts', code: terminates },
  { path: 'src/console/terminate.ts', code: terminates },
  { path: 'src/console/text.tsx', code: 'export const bold = <p>plain</p>\n' },
  { path: 'src/dispatch/config-type.ts', code: importsType('../settings/config.js') },
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
  it('have a line for every folder of src and for every room, with a planted violation', () => {
    const inside = (folder: string) =>
      readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name)
        .sort()
    expect(Object.keys(layers).sort()).toEqual(inside('src'))
    for (const [folder, known] of Object.entries(rooms))
      expect(Object.keys(known).sort()).toEqual(inside(folder))
    const planted = new Set(forbiddenImports.map(([folder]) => folder))
    const all = [
      ...inside('src').map((name) => `src/${name}`),
      ...Object.keys(rooms).flatMap((folder) => inside(folder).map((name) => `${folder}/${name}`)),
    ]
    expect(all.filter((folder) => !planted.has(folder))).toEqual([])
  })

  it('plants each file once', () => {
    const paths = [...violations, ...clean].map(({ path }) => path)
    expect(paths.length).toBe(new Set(paths).size)
  })

  it('ends non-zero when anything is found', () => {
    expect(exitCode).toBe(1)
  })

  it.each(violations)('reports $rule in $path', ({ path, rule }) => {
    expect([...(found.get(path) ?? [])]).toContain(rule)
  })

  it.each(clean)('finds nothing wrong with $path', ({ path }) => {
    expect([...(found.get(path) ?? [])]).toEqual([])
  })
})
