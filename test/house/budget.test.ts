import { readFileSync } from 'node:fs'
import { parseSync } from 'rolldown/utils'
import { describe, expect, it } from 'vitest'
import { codeBelow, stylesBelow } from './tree.js'

/**
 * What `src` and `workers` may have: lines that are neither blank nor comments, and files. A commit that makes
 * them smaller lowers these numbers. One that raises a number names the reason in its message.
 */
const budget = { lines: 82_850, files: 818 }
/** How far the budget may be above what there is. */
const slack = { lines: 100, files: 3 }

function linesOf(path: string, text = readFileSync(path, 'utf8')): number {
  let code = text
  for (const { start, end } of path.endsWith('.css') ? [] : parseSync(path, text).comments)
    code = code.slice(0, start) + code.slice(start, end).replaceAll(/[^\n]/g, ' ') + code.slice(end)
  return code.split('\n').filter((line) => line.trim() !== '').length
}

describe('the size of the code', () => {
  it('is within its budget, which only goes down', () => {
    const folders = ['src', 'workers'] as const
    const paths = [...codeBelow(...folders), ...stylesBelow(...folders)]
    const lines = paths.reduce((sum, path) => sum + linesOf(path), 0)
    const used = { lines, files: paths.length }
    for (const what of ['lines', 'files'] as const) {
      expect([what, used[what] <= budget[what], used]).toEqual([what, true, used])
      expect([what, budget[what] - used[what] <= slack[what], used]).toEqual([what, true, used])
    }
  })

  it('counts no comments and no blank lines', () => {
    const text = '// One.\nconst a = 1 // Two.\n\n/**\n * Three.\n */\nconst b = `\n// text\n`\n'
    expect(linesOf('a.ts', text)).toBe(4)
  })
})
