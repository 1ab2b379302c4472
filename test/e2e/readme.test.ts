import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectPrinted, runSteps, stepsOf } from '../support/documented-commands.js'
import type { Outcome } from '../support/documented-commands.js'
import { eventually } from '../support/eventually.js'
import { freePort } from '../support/server/free-port.js'

/*
 * The commands in the README: the documented script starts the server, on another port and data directory,
 * and the commands of the section "A taste" run against it.
 */

/** Maximum length of the README in lines: it is a page, not a manual. */
const README_LINES_MAX = 140

/** The address of the server according to the README. */
const DOCUMENTED_ORIGIN = 'http://127.0.0.1:8787'

const readme = readFileSync('README.md', 'utf8')
const [before = '', after = ''] = readme.split('\n## A taste\n')
const commands = stepsOf(before)
const taste = stepsOf(after.split('\n## ')[0] ?? '')

describe('the README', () => {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-readme-'))
  let server: ChildProcess | undefined
  let outcome: Outcome

  beforeAll(async () => {
    const port = await freePort()
    const env = { PATH: process.env['PATH'], HOME: process.env['HOME'] }
    // Without the pre-script, which would rebuild the program while other tests use it.
    server = spawn('npm', ['start', '--ignore-scripts'], {
      env: { ...env, SERVICE_PORT: String(port), SERVICE_DATA_DIR: join(directory, 'data') },
      stdio: 'ignore',
      detached: true,
    })
    const origin = `http://127.0.0.1:${port}`
    await eventually(async () => (await fetch(`${origin}/readyz`).catch(() => undefined))?.status === 200)
    symlinkSync(resolve('dist'), join(directory, 'dist'))
    // A reader has a terminal; the commands here have files.
    const steps = taste.map((step) => ({
      ...step,
      code: step.code
        .replaceAll(DOCUMENTED_ORIGIN, origin)
        .replace(/^strandfast query weather$/m, '$& --format text'),
    }))
    outcome = await runSteps(steps, {
      directory,
      cwd: directory,
      env: { ...env, SERVICE_PORT: String(port) },
    })
  })

  afterAll(async () => {
    if (server?.pid !== undefined && server.exitCode === null) {
      const ended = once(server, 'exit')
      process.kill(-server.pid, 'SIGTERM')
      await ended
    }
    rmSync(directory, { recursive: true, force: true })
  })

  it('fits on a page', () => {
    expect(readme.split('\n').length - 1).toBeLessThan(README_LINES_MAX)
  })

  it('contains two commands, with scripts that exist', () => {
    expect(commands.map(({ code }) => code.trim())).toEqual(['npm ci && npm start', 'npm ci && npm test'])
    expect(JSON.parse(readFileSync('package.json', 'utf8'))).toMatchObject({
      scripts: { start: expect.any(String), test: expect.any(String) },
    })
  })

  it('has a taste, by commands and by HTTP, that runs without a failing command', () => {
    expect(taste).toHaveLength(2)
    expect(outcome.code, outcome.stderr).toBe(0)
  })

  it('contains the output of the taste', () => {
    expect(taste[0]?.printed).toBeDefined()
    expectPrinted(directory, { ...taste[0], index: 0 })
  })
})
