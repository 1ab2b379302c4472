import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cyclesOf, importsAmong, importsOfFolders } from './imports.js'
import { codeBelow } from './tree.js'

// import/no-cycle of the linter and knip ignore imports of types, so this test looks for cycles.

const imports = importsAmong(codeBelow('src', 'workers', 'bench', 'scripts', 'test'))

it('finds imports between most files', () => {
  const importing = [...imports.values()].filter((imported) => imported.length > 0)
  expect(importing.length).toBeGreaterThan(imports.size / 2)
})

it('finds imports between .tsx files', () => {
  const imported = imports.get('src/console/main.tsx') ?? []
  expect(imported.filter(({ path }) => path.endsWith('.tsx')).length).toBeGreaterThan(10)
})

it('finds no import cycle of values or types', () => {
  expect(cyclesOf(imports)).toEqual([])
})

it('finds no cycle between folders, imports of types included', () => {
  const folders = importsOfFolders(importsAmong(codeBelow('src', 'workers')))
  expect([...folders.keys()]).toEqual(expect.arrayContaining(['src', 'src/base', 'workers', 'workers/store']))
  expect(cyclesOf(folders)).toEqual([])
})

describe('a planted import cycle', () => {
  let tree: string

  beforeEach(() => {
    tree = mkdtempSync(join(tmpdir(), 'circles-'))
  })

  afterEach(() => rmSync(tree, { recursive: true, force: true }))

  function plant(planted: Record<string, string>): ReturnType<typeof importsAmong> {
    const paths = Object.entries(planted).map(([path, code]) => {
      mkdirSync(dirname(join(tree, path)), { recursive: true })
      writeFileSync(join(tree, path), code)
      return join(tree, path)
    })
    return importsAmong(paths)
  }

  function circles(planted: Record<string, string>): string[] {
    return cyclesOf(plant(planted)).map((circle) =>
      circle
        .split(' → ')
        .map((path) => relative(tree, path).replaceAll('\\', '/'))
        .join(' → '),
    )
  }

  it.each([
    ['of values', "import { b } from './deeper/b.js'\n\nexport const a = b\n"],
    ['of types only', "import type { B } from './deeper/b.js'\n\nexport type A = B\n"],
    ['of re-exports', "export { b } from './deeper/b.js'\n"],
    ['of re-exported types', "export type * from './deeper/b.js'\n"],
    ['of an inline import type', "export type A = import('./deeper/b.js').B\n"],
    ['of a dynamic import', "export const a = () => import('./deeper/b.js')\n"],
  ])('is found if it consists %s', (_, code) => {
    const back = "import type { A } from '../c.js'\n\nexport type B = A\nexport const b = 1\n"
    const last = "import type { A } from './a.js'\n\nexport type C = A\n"
    expect(circles({ 'a.ts': code, 'deeper/b.ts': back, 'c.ts': last })).toEqual([
      'a.ts → deeper/b.ts → c.ts → a.ts',
    ])
  })

  it.each([
    ['of components', "import { B } from './deeper/b.js'\n\nexport const A = () => <B />\n"],
    ['of types only', "import type { B } from './deeper/b.js'\n\nexport type A = B\n"],
    ['of a page that is imported dynamically', "export const A = () => import('./deeper/b.js')\n"],
  ])('is found through .tsx files if it consists %s', (_, code) => {
    const back = "import type { A } from '../c.js'\n\nexport type Back = A\nexport const B = () => <p>b</p>\n"
    const last = "import type { A } from './a.js'\n\nexport type C = A\n"
    expect(circles({ 'a.tsx': code, 'deeper/b.tsx': back, 'c.ts': last })).toEqual([
      'a.tsx → deeper/b.tsx → c.ts → a.tsx',
    ])
  })

  it('is not found if two files import a third', () => {
    const one = "import type { C } from './c.js'\n\nexport type One = C\n"
    const two = `import type { One } from './one.js'\n${one}`
    expect(circles({ 'one.ts': one, 'two.ts': two, 'c.ts': 'export type C = 1\n' })).toEqual([])
  })

  it.each([
    ['of values', 'src/one', "import { b } from '../two/deeper/b.js'\n\nexport const a = b\n"],
    ['of types only', 'src/one', "export type { B } from '../two/deeper/b.js'\n"],
    ['of a direct file of `src`', 'src', "import type { B } from './two/deeper/b.js'\n\nexport type A = B\n"],
  ])('is found between folders without a cycle of files if it consists %s', (_, folder, code) => {
    const back = `import type { D } from '${folder === 'src' ? '..' : '../one'}/d.js'\n\nexport type C = D\n`
    const planted = plant({
      [`${folder}/a.ts`]: code,
      'src/two/deeper/b.ts': 'export type B = 1\nexport const b = 1\n',
      'src/two/c.ts': back,
      [`${folder}/d.ts`]: 'export type D = 1\n',
    })
    expect(cyclesOf(planted)).toEqual([])
    expect(cyclesOf(importsOfFolders(planted))).toEqual([`${folder} → src/two → ${folder}`])
  })
})
