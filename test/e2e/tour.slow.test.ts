import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  expectPrinted,
  fits,
  folded,
  foldedLines,
  runSteps,
  stepsOf,
} from '../support/documented-commands.js'
import type { Outcome } from '../support/documented-commands.js'
import { freePort } from '../support/server/free-port.js'

/*
 * The tour and the guide: every block of commands and code runs from top to bottom in one shell, as a reader
 * would run it, and its output is compared with the documented output.
 */

const pages = [
  { page: 'docs/TOUR.md', blocksMin: 8, outputsMin: 5 },
  { page: 'docs/GUIDE.md', blocksMin: 20, outputsMin: 15 },
]

describe.each(pages)('$page', ({ page, blocksMin, outputsMin }) => {
  const steps = stepsOf(readFileSync(page, 'utf8'))
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-tour-'))
  let outcome: Outcome

  beforeAll(async () => {
    const env = {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      // The page creates a directory here for its data and all other files.
      TMPDIR: directory,
      SERVICE_PORT: String(await freePort()),
    }
    outcome = await runSteps(steps, { directory, env })
  })

  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it('has commands, code and documented output', () => {
    expect(steps.length).toBeGreaterThan(blocksMin)
    expect(steps.filter(({ printed }) => printed !== undefined).length).toBeGreaterThan(outputsMin)
  })

  it('runs from top to bottom without a failing command', () => {
    expect(outcome.code, outcome.stderr).toBe(0)
  })

  it.each(steps.map((step, index) => ({ ...step, index })).filter(({ printed }) => printed !== undefined))(
    'prints the documented output: $heading, block $index',
    (step) => expectPrinted(directory, step),
  )
})

describe('the comparison with documented output', () => {
  it('accepts any text for …, and only there', () => {
    expect(fits('sha256:…', 'sha256:ab12')).toBe(true)
    expect(fits('sha256:…', 'md5:ab12')).toBe(false)
    expect(fits('a.c', 'abc')).toBe(false)
  })

  it('finds a missing, additional or different member', () => {
    const documented = { id: '…', seq: 1, created_at_ms: 5 }
    expect(folded({ id: 'ab', seq: 1, created_at_ms: 77 }, documented)).toEqual(documented)
    expect(folded({ id: 'ab', created_at_ms: 77 }, documented)).not.toEqual(documented)
    expect(folded({ id: 'ab', seq: 1, created_at_ms: 77, more: 1 }, documented)).not.toEqual(documented)
    expect(folded({ id: 'ab', seq: 2, created_at_ms: 77 }, documented)).not.toEqual(documented)
    expect(folded({ id: 7, seq: 1, created_at_ms: 77 }, documented)).not.toEqual(documented)
  })

  it('finds a missing or additional line', () => {
    expect(foldedLines('1\n', '1\n2\n')).not.toEqual(['1', '2', ''])
    expect(foldedLines('1\n2\n3\n', '1\n2\n')).not.toEqual(['1', '2', ''])
  })
})
