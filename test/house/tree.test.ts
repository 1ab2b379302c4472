import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { codeBelow, filesBelow, linesMatching, stylesBelow, textFiles } from './tree.js'

// A pattern stands here in pieces where the whole of it would find this very file.
const words = (...parts: string[]) => parts.join('')

/** The folders of code that is kept short and finished. */
const codeFolders = ['src', 'workers', 'bench', 'scripts']

const LINES_MAX = 400

/** Code and style sheets that are longer than a reader can keep in view. */
function longFiles(...folders: string[]): string[] {
  const files = [...codeBelow(...folders), ...stylesBelow(...folders)]
  return files.filter((path) => readFileSync(path, 'utf8').split('\n').length > LINES_MAX + 1)
}

/** Lines of code and of style sheets that note unfinished work. */
function unfinishedNotes(...folders: string[]): string[] {
  const note = new RegExp(`\\b(${words('TO', 'DO')}|${words('FIX', 'ME')}|${words('XX', 'X')})\\b`)
  return linesMatching([...codeBelow(...folders), ...stylesBelow(...folders)], note)
}

/** Lines that skip a test, leave it for later or run it alone. */
function heldTests(...folders: string[]): string[] {
  return linesMatching(
    codeBelow(...folders),
    /\b(it|test|describe)(\.\w+)*\.(skip|only|todo)\b|\bx(it|describe)\(/,
  )
}

/** Lines that name an absolute path of the machine that they were written on. */
function machinePaths(root?: string): string[] {
  return linesMatching(textFiles(root), new RegExp(`(^|[^\\w.~/-])/(work|root|home)/`))
}

/** Files that only pass on what others export. */
function filesThatPassOn(...folders: string[]): string[] {
  return codeBelow(...folders).filter((path) => {
    const code = readFileSync(path, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    const rest = code.replace(/export\s+(type\s+)?(\*(\s+as\s+\w+)?|\{[^}]*\})\s+from\s+'[^']*'/g, '')
    return code.trim() !== '' && rest.trim() === ''
  })
}

/** Files whose names, or whose folders' names, say nothing of what is in them. */
function drawers(...folders: string[]): string[] {
  return folders
    .flatMap(filesBelow)
    .filter((path) => /(^|\/)(utils?|common|helpers?|manager|misc)(\.|\/)/.test(path))
}

it('keeps each file of src, workers, bench and scripts within 400 lines', () => {
  const files = codeFolders.flatMap((folder) => [...codeBelow(folder), ...stylesBelow(folder)])
  expect(files).toContain('src/console/main.tsx')
  expect(files).toContain('src/console/base.css')
  expect(longFiles(...codeFolders)).toEqual([])
})

it('leaves no note of unfinished work in the code', () => {
  expect(unfinishedNotes(...codeFolders)).toEqual([])
})

it('runs every test: none is skipped, left for later or run alone', () => {
  expect(heldTests('test')).toEqual([])
})

it('names no absolute path of the machine that it was written on', () => {
  expect(machinePaths()).toEqual([])
})

it('has no file that only passes on what others export, but the door of the client', () => {
  expect(filesThatPassOn('src', 'workers')).toEqual(['src/client/index.ts'])
})

it('calls no file a drawer for everything', () => {
  expect(drawers(...codeFolders, 'test')).toEqual([])
})

it('keeps the plain model apart from the code that it is compared with', () => {
  const taken = /from '(\.\.\/)+(src|dist|workers)\//
  expect(taken.test(words("import { x } from '../../sr", "c/strand/x.js'"))).toBe(true)
  // Only what compares exports and checkpoints uses the verifiers, which are tested by themselves.
  const model = codeBelow('test/model').filter((path) => !/\/compare-(records|strands)\.ts$/.test(path))
  expect(model.length).toBeGreaterThan(10)
  expect(linesMatching(model, taken)).toEqual([])
})

describe('a planted violation', () => {
  let root: string

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'strandfast-tree-'))
  })

  afterEach(() => rmSync(root, { recursive: true, force: true }))

  /** What a rule finds in a tree with these files alone. */
  function found(rule: (folder: string) => string[], planted: Record<string, string>): string[] {
    for (const [path, text] of Object.entries(planted)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    return rule(root).map((line) => line.slice(root.length + 1))
  }

  it.each(['a.ts', 'deeper/a.tsx', 'a.mjs', 'a.css'])('is found when a file is too long: %s', (path) => {
    expect(found(longFiles, { [path]: '\n'.repeat(401) })).toEqual([path])
    expect(found(longFiles, { [path]: '\n'.repeat(400) })).toEqual([])
  })

  it.each([
    ['a.ts', words('// TO', 'DO: later')],
    ['deeper/a.tsx', words('const a = <p>{/* FIX', 'ME */}</p>')],
    ['a.css', words('/* XX', 'X */')],
  ])('is found when a note says that work is unfinished: %s', (path, text) => {
    expect(found(unfinishedNotes, { [path]: `\n${text}\n` })).toEqual([`${path}:2: ${text}`])
  })

  it.each([
    ['a.test.ts', words('it.', 'only("x", () => {})')],
    ['a.test.tsx', words('x', 'it("x", () => <p />)')],
  ])('is found when a test is held back: %s', (path, text) => {
    expect(found(heldTests, { [path]: text })).toEqual([`${path}:1: ${text}`])
    expect(found(heldTests, { [path]: 'it.skipIf(condition)("x", () => {})' })).toEqual([])
  })

  it.each(['a.md', 'a.ts', 'deeper/a.tsx', 'a.css'])(
    'is found when a path of a machine is named: %s',
    (path) => {
      const text = words('// cd /wo', 'rk/x')
      expect(found(machinePaths, { [path]: text })).toEqual([`${path}:1: ${text}`])
      expect(found(machinePaths, { [path]: '// src/work/x' })).toEqual([])
    },
  )

  it.each(['a.ts', 'deeper/a.tsx'])('is found when a file only passes on what others export: %s', (path) => {
    const passed = "// All of it.\nexport { b } from './b.js'\nexport type * from './c.js'\n"
    expect(found(filesThatPassOn, { [path]: passed })).toEqual([path])
    expect(found(filesThatPassOn, { [path]: `${passed}export const d = 1\n` })).toEqual([])
  })

  it.each(['utils.ts', 'helpers/a.tsx', 'common.css'])(
    'is found when a file has a name for everything: %s',
    (path) => {
      expect(found(drawers, { [path]: '' })).toEqual([path])
    },
  )
})
