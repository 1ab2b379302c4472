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
 * The tour, run as a reader runs it: every block of commands and of code from top to bottom in one shell, and what each
 * prints held to what the page says it prints.
 */

const steps = stepsOf(readFileSync('docs/TOUR.md', 'utf8'))

describe('the tour', () => {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-tour-'))
  let outcome: Outcome

  beforeAll(async () => {
    const env = {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      // The tour keeps its data, and all else that it makes, in a directory that it makes here.
      TMPDIR: directory,
      SERVICE_PORT: String(await freePort()),
    }
    outcome = await runSteps(steps, { directory, env })
  })

  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it('has commands, code and output to hold it to', () => {
    expect(steps.length).toBeGreaterThan(20)
    expect(steps.some(({ language }) => language === 'js')).toBe(true)
    expect(steps.filter(({ printed }) => printed !== undefined).length).toBeGreaterThan(15)
  })

  it('runs from top to bottom without a command that fails', () => {
    expect(outcome.code, outcome.stderr).toBe(0)
  })

  it.each(steps.map((step, index) => ({ ...step, index })).filter(({ printed }) => printed !== undefined))(
    'prints what it says: $heading, block $index',
    (step) => expectPrinted(directory, step),
  )
})

describe('the comparison with documented output', () => {
  it('takes any text for …, and nothing else', () => {
    expect(fits('sha256:…', 'sha256:ab12')).toBe(true)
    expect(fits('sha256:…', 'md5:ab12')).toBe(false)
    expect(fits('a.c', 'abc')).toBe(false)
  })

  it('finds a member that is missing, new or another', () => {
    const documented = { id: '…', seq: 1, created_at_ms: 5 }
    expect(folded({ id: 'ab', seq: 1, created_at_ms: 77 }, documented)).toEqual(documented)
    expect(folded({ id: 'ab', created_at_ms: 77 }, documented)).not.toEqual(documented)
    expect(folded({ id: 'ab', seq: 1, created_at_ms: 77, more: 1 }, documented)).not.toEqual(documented)
    expect(folded({ id: 'ab', seq: 2, created_at_ms: 77 }, documented)).not.toEqual(documented)
    expect(folded({ id: 7, seq: 1, created_at_ms: 77 }, documented)).not.toEqual(documented)
  })

  it('finds a line that is missing or new', () => {
    expect(foldedLines('1\n', '1\n2\n')).not.toEqual(['1', '2', ''])
    expect(foldedLines('1\n2\n3\n', '1\n2\n')).not.toEqual(['1', '2', ''])
  })
})
