import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { importsAmong } from './imports.js'
import { mayImport, layerOf, layers, violations } from './layers.js'
import { codeBelow } from './tree.js'

const foldersIn = (folder: string) =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`)

it('allows no import against the layers', () => {
  const imports = importsAmong(codeBelow('src', 'workers'))
  expect([...imports.values()].flat().length).toBeGreaterThan(imports.size)
  expect(violations(imports)).toEqual([])
})

it('has a layer for each sibling folder and a folder for each layer', () => {
  const names = Object.keys(layers)
  const beside = [...new Set(names.map(dirname))].filter((folder) => folder !== '.')
  expect(beside.flatMap(foldersIn).filter((folder) => !names.includes(folder))).toEqual([])
  expect(names.filter((layer) => !existsSync(layer))).toEqual([])
})

it('names an existing file or folder in each entry', () => {
  const files = codeBelow('src', 'workers')
  const entries = Object.values(layers).flatMap((line) => line.split(' ').filter(Boolean))
  const covers = (entry: string) => {
    const name = entry.replace(/^types:/, '').replace(/\/\*$/, '')
    return files.some((path) => path.startsWith(`${name}/`) || path.replace(/\.tsx?$/, '') === name)
  }
  expect([...new Set(entries)].filter((entry) => !covers(entry))).toEqual([])
})

describe('a planted violation', () => {
  /** The violations in a tree with these files and imports. */
  function found(path: string, code: string, imported: string): string[] {
    const tree = mkdtempSync(join(tmpdir(), 'layers-'))
    const files = { [path]: code, [imported]: 'export type B = 1\nexport const b = 1\n' }
    const imports = importsAmong(
      Object.entries(files).map(([name, text]) => {
        mkdirSync(dirname(join(tree, name)), { recursive: true })
        writeFileSync(join(tree, name), text)
        return join(tree, name)
      }),
    )
    rmSync(tree, { recursive: true })
    const within = [...imports].map(([name, all]) => {
      const paths = all.map((one) => ({ ...one, path: one.path.slice(tree.length + 1) }))
      return [name.slice(tree.length + 1), paths] as const
    })
    return violations(new Map(within))
  }

  it.each([
    ['src/strand/a.ts', "import { b } from '../settings/b.js'\n\nb()\n", 'src/settings/b.ts'],
    [
      'src/base/deeper/a.ts',
      "import type { B } from '../../wire/b.js'\n\nexport type A = B\n",
      'src/wire/b.ts',
    ],
    ['src/front/routes/a.ts', "export const a = () => import('../http/b.js')\n", 'src/front/http/b.ts'],
    ['src/front/engine/a.ts', "export { b } from '../../settings/b.js'\n", 'src/settings/b.ts'],
    [
      'src/console/keys/a.tsx',
      "import { b } from '../agents/b.js'\n\nexport const A = () => <p>{b}</p>\n",
      'src/console/agents/b.tsx',
    ],
    ['src/cluster/members/a.ts', "export type A = import('../links/b.js').B\n", 'src/cluster/links/b.ts'],
    ['workers/store/log/a.ts', "import { b } from '../../shard/b.js'\n\nb()\n", 'workers/shard/b.ts'],
  ])('is found in %s', (path, code, imported) => {
    expect(found(path, code, imported)).toEqual([`${path} → ${imported}`])
  })

  it.each([
    [
      'src/front/engine/a.ts',
      "import type { B } from '../../settings/b.js'\n\nexport type A = B\n",
      'src/settings/b.ts',
    ],
    ['src/strand/deeper/a.ts', "import { b } from '../b.js'\n\nb()\n", 'src/strand/b.ts'],
    [
      'src/console/users/a.tsx',
      "import { b } from '../parts/b.js'\n\nexport const A = () => <p>{b}</p>\n",
      'src/console/parts/b.tsx',
    ],
  ])('is not found in %s', (path, code, imported) => {
    expect(found(path, code, imported)).toEqual([])
  })

  it('is possible in each layer', () => {
    const names = Object.keys(layers)
    const open = names.filter((layer) =>
      names.every((other) => mayImport(`${layer}/a.ts`, { path: `${other}/b.ts`, isType: false })),
    )
    expect(open).toEqual([])
    expect(layerOf('src/front/http/ingest/deeper/a.ts')).toBe('src/front/http/ingest')
  })
})
