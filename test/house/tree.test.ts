import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { codeBelow, filesBelow, linesMatching, stylesBelow, textFiles } from './tree.js'

// A pattern is split if it would match this file.
const words = (...parts: string[]) => parts.join('')

/** The folders whose code is checked for length and unfinished work. */
const codeFolders = ['src', 'workers', 'bench', 'scripts']

const LINES_MAX = 400

/** Code files and style sheets that are too long. */
function longFiles(...folders: string[]): string[] {
  const files = [...codeBelow(...folders), ...stylesBelow(...folders)]
  return files.filter((path) => readFileSync(path, 'utf8').split('\n').length > LINES_MAX + 1)
}

/** Lines with a note of unfinished work. */
function unfinishedNotes(...folders: string[]): string[] {
  const note = new RegExp(`\\b(${words('TO', 'DO')}|${words('FIX', 'ME')}|${words('XX', 'X')})\\b`)
  return linesMatching([...codeBelow(...folders), ...stylesBelow(...folders)], note)
}

/** Lines that skip a test, postpone it or run it alone. */
function heldTests(...folders: string[]): string[] {
  return linesMatching(
    codeBelow(...folders),
    /\b(it|test|describe)(\.\w+)*\.(skip|only|todo)\b|\bx(it|describe)\(/,
  )
}

/** Lines with an absolute path of the author's machine. */
function machinePaths(root?: string): string[] {
  return linesMatching(textFiles(root), new RegExp(`(^|[^\\w.~/-])/(work|root|home)/`))
}

/** Files that only re-export others. */
function reExportFiles(...folders: string[]): string[] {
  return codeBelow(...folders).filter((path) => {
    const code = readFileSync(path, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    const rest = code.replace(/export\s+(type\s+)?(\*(\s+as\s+\w+)?|\{[^}]*\})\s+from\s+'[^']*'/g, '')
    return code.trim() !== '' && rest.trim() === ''
  })
}

/** Files with a meaningless name or folder name. */
function vagueNames(...folders: string[]): string[] {
  return folders
    .flatMap(filesBelow)
    .filter((path) => /(^|\/)(utils?|common|helpers?|manager|misc)(\.|\/)/.test(path))
}

it('limits each file of src, workers, bench and scripts to 400 lines', () => {
  const files = codeFolders.flatMap((folder) => [...codeBelow(folder), ...stylesBelow(folder)])
  expect(files).toContain('src/console/main.tsx')
  expect(files).toContain('src/console/base.css')
  expect(longFiles(...codeFolders)).toEqual([])
})

it('contains no note of unfinished work', () => {
  expect(unfinishedNotes(...codeFolders)).toEqual([])
})

it('skips, postpones or singles out no test', () => {
  expect(heldTests('test')).toEqual([])
})

it("contains no absolute path of the author's machine", () => {
  expect(machinePaths()).toEqual([])
})

it('has no file that only re-exports others, except the entry of the client', () => {
  expect(reExportFiles('src', 'workers')).toEqual(['src/client/index.ts'])
})

it('has no file with a meaningless name', () => {
  expect(vagueNames(...codeFolders, 'test')).toEqual([])
})

it('separates the model from the code with which it is compared', () => {
  const importsCode = /from '(\.\.\/)+(src|dist|workers)\//
  expect(importsCode.test(words("import { x } from '../../sr", "c/strand/x.js'"))).toBe(true)
  // Only the comparison of exports and checkpoints uses the verifiers, which have their own tests.
  const model = codeBelow('test/model').filter((path) => !/\/compare-(records|strands)\.ts$/.test(path))
  expect(model.length).toBeGreaterThan(10)
  expect(linesMatching(model, importsCode)).toEqual([])
})

describe('a planted violation', () => {
  let root: string

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'strandfast-tree-'))
  })

  afterEach(() => rmSync(root, { recursive: true, force: true }))

  /** The findings of a rule in a tree with only these files. */
  function found(rule: (folder: string) => string[], planted: Record<string, string>): string[] {
    for (const [path, text] of Object.entries(planted)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    return rule(root).map((line) => line.slice(root.length + 1))
  }

  it.each(['a.ts', 'deeper/a.tsx', 'a.mjs', 'a.css'])('is found if a file is too long: %s', (path) => {
    expect(found(longFiles, { [path]: '\n'.repeat(401) })).toEqual([path])
    expect(found(longFiles, { [path]: '\n'.repeat(400) })).toEqual([])
  })

  it.each([
    ['a.ts', words('// TO', 'DO: later')],
    ['deeper/a.tsx', words('const a = <p>{/* FIX', 'ME */}</p>')],
    ['a.css', words('/* XX', 'X */')],
  ])('is found if a note mentions unfinished work: %s', (path, text) => {
    expect(found(unfinishedNotes, { [path]: `\n${text}\n` })).toEqual([`${path}:2: ${text}`])
  })

  it.each([
    ['a.test.ts', words('it.', 'only("x", () => {})')],
    ['a.test.tsx', words('x', 'it("x", () => <p />)')],
  ])('is found if a test does not run: %s', (path, text) => {
    expect(found(heldTests, { [path]: text })).toEqual([`${path}:1: ${text}`])
    expect(found(heldTests, { [path]: 'it.skipIf(condition)("x", () => {})' })).toEqual([])
  })

  it.each(['a.md', 'a.ts', 'deeper/a.tsx', 'a.css'])(
    'is found if a text contains a path of a machine: %s',
    (path) => {
      const text = words('// cd /wo', 'rk/x')
      expect(found(machinePaths, { [path]: text })).toEqual([`${path}:1: ${text}`])
      expect(found(machinePaths, { [path]: words('// src/wo', 'rk/x') })).toEqual([])
    },
  )

  it.each(['a.ts', 'deeper/a.tsx'])('is found if a file only re-exports others: %s', (path) => {
    const passed = "// All of it.\nexport { b } from './b.js'\nexport type * from './c.js'\n"
    expect(found(reExportFiles, { [path]: passed })).toEqual([path])
    expect(found(reExportFiles, { [path]: `${passed}export const d = 1\n` })).toEqual([])
  })

  it.each(['utils.ts', 'helpers/a.tsx', 'common.css'])(
    'is found if a file has a meaningless name: %s',
    (path) => {
      expect(found(vagueNames, { [path]: '' })).toEqual([path])
    },
  )
})
