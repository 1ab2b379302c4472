import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { codeBelow, filesBelow, linesMatching, textFiles } from './tree.js'

// A pattern stands here in pieces where the whole of it would find this very file.
const words = (...parts: string[]) => parts.join('')

it('keeps each file of src, workers, bench and scripts within 400 lines', () => {
  const files = codeBelow('src', 'workers', 'bench', 'scripts')
  expect(files).not.toEqual([])
  expect(files.filter((path) => readFileSync(path, 'utf8').split('\n').length > 401)).toEqual([])
})

it('leaves no note of unfinished work in the code', () => {
  const note = new RegExp(`\\b(${words('TO', 'DO')}|${words('FIX', 'ME')}|${words('XX', 'X')})\\b`)
  expect(note.test(words('// TO', 'DO: later'))).toBe(true)
  expect(linesMatching(codeBelow('src', 'workers', 'bench', 'scripts'), note)).toEqual([])
})

it('runs every test: none is skipped, left for later or run alone', () => {
  const held = /\b(it|test|describe)(\.\w+)*\.(skip|only|todo)\b|\bx(it|describe)\(/
  expect(held.test(words('it.', 'only("x", () => {})'))).toBe(true)
  expect(held.test('it.skipIf(condition)("x", () => {})')).toBe(false)
  expect(linesMatching(codeBelow('test'), held)).toEqual([])
})

it('names no absolute path of the machine that it was written on', () => {
  const path = new RegExp(`(^|[^\\w.~/-])/(work|root|home)/`)
  expect(path.test(words('cd /wo', 'rk/x'))).toBe(true)
  expect(path.test('src/work/x')).toBe(false)
  expect(linesMatching(textFiles(), path)).toEqual([])
})

it('has no file that only passes on what others export, but the door of the client', () => {
  const passesOn = codeBelow('src', 'workers').filter((path) => {
    const code = readFileSync(path, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    const rest = code.replace(/export\s+(type\s+)?(\*(\s+as\s+\w+)?|\{[^}]*\})\s+from\s+'[^']*'/g, '')
    return code.trim() !== '' && rest.trim() === ''
  })
  expect(passesOn.filter((path) => path !== 'src/client/index.ts')).toEqual([])
})

it('calls no file a drawer for everything', () => {
  const drawer = /(^|\/)(utils?|common|helpers?|manager|misc)(\.|\/)/
  const files = ['src', 'workers', 'bench', 'scripts', 'test'].flatMap(filesBelow)
  expect(files.filter((path) => drawer.test(path))).toEqual([])
})

it('keeps the plain model apart from the code that it is compared with', () => {
  const taken = /from '(\.\.\/)+(src|dist|workers)\//
  expect(taken.test(words("import { x } from '../../sr", "c/strand/x.js'"))).toBe(true)
  // Only what compares exports and checkpoints uses the verifiers, which are tested by themselves.
  const model = codeBelow('test/model').filter((path) => !/\/compare-(records|strands)\.ts$/.test(path))
  expect(model.length).toBeGreaterThan(10)
  expect(linesMatching(model, taken)).toEqual([])
})
