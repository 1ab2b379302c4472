import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectPrinted, runSteps, stepsOf, type Outcome } from '../support/documented-commands.js'
import { freePort } from '../support/server/free-port.js'

/*
 * The page about load testing: all command blocks run from top to bottom in one shell, as a reader would run
 * them. The block with wrk is skipped if wrk is not installed.
 */

const hasWrk = spawnSync('wrk', ['-v']).error === undefined
const steps = stepsOf(readFileSync('docs/LOAD-TESTING.md', 'utf8')).filter(
  ({ heading }) => hasWrk || heading !== 'wrk',
)

describe('the page on load testing', () => {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-load-'))
  let outcome: Outcome

  beforeAll(async () => {
    const env = {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      TMPDIR: directory,
      SERVICE_PORT: String(await freePort()),
    }
    outcome = await runSteps(steps, { directory, env })
  })

  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it('has a block for each tool, and one that checks the written records', () => {
    const headings = steps.map(({ heading }) => heading)
    expect(headings).toEqual(expect.arrayContaining(['One command', 'autocannon', 'Afterwards']))
  })

  it('runs from top to bottom without a failing command', () => {
    expect(outcome.code, outcome.stderr).toBe(0)
  })

  it.each(steps.map((step, index) => ({ ...step, index })).filter(({ printed }) => printed !== undefined))(
    'prints the documented output: $heading, block $index',
    (step) => expectPrinted(directory, step),
  )
})
