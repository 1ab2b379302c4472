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
 * The README's own commands: the server is started by the script that it names, on another port and data directory, and
 * the taste runs beside it.
 */

/** The most lines that the README may have, so that it stays a page and not a manual. */
const README_LINES_MAX = 160

/** Where the README says that the server listens. */
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
    // Without the script before it, which would build again under the feet of other tests.
    server = spawn('npm', ['start', '--ignore-scripts'], {
      env: { ...env, SERVICE_PORT: String(port), SERVICE_DATA_DIR: join(directory, 'data') },
      stdio: 'ignore',
      detached: true,
    })
    const origin = `http://127.0.0.1:${port}`
    await eventually(async () => (await fetch(`${origin}/readyz`).catch(() => undefined))?.status === 200)
    symlinkSync(resolve('dist'), join(directory, 'dist'))
    const steps = taste.map((step) => ({ ...step, code: step.code.replaceAll(DOCUMENTED_ORIGIN, origin) }))
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

  it('names two commands, of scripts that the package has', () => {
    expect(commands.map(({ code }) => code.trim())).toEqual(['npm ci && npm start', 'npm ci && npm test'])
    expect(JSON.parse(readFileSync('package.json', 'utf8'))).toMatchObject({
      scripts: { start: expect.any(String), test: expect.any(String) },
    })
  })

  it('has a taste that runs without a command that fails', () => {
    expect(taste).toHaveLength(1)
    expect(outcome.code, outcome.stderr).toBe(0)
  })

  it('says what the taste prints', () => {
    expect(taste[0]?.printed).toBeDefined()
    expectPrinted(directory, { ...taste[0], index: 0 })
  })
})
