import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { createLogger, logDestination } from '../../../src/base/log.js'

describe('createLogger', () => {
  it('writes JSON lines with part, level and time, and nothing below its level', () => {
    const lines: string[] = []
    const log = createLogger('warn', 'front', { write: (line) => lines.push(line) })
    log.info('quiet')
    log.warn({ agent: 'sensor' }, 'loud')
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 'warn',
      part: 'front',
      agent: 'sensor',
      msg: 'loud',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    })
  })

  it.each(['authorization', 'cookie', 'seed_hex', 'masterSeed', 'password', 'token', 'rootApiKey'])(
    'redacts %s at each level',
    (name) => {
      const lines: string[] = []
      const log = createLogger('info', 'front', { write: (line) => lines.push(line) })
      log.info({ [name]: 'hidden', request: { [name]: 'hidden', headers: { [name]: 'hidden' } } }, 'seen')
      expect(lines[0]).toContain('seen')
      expect(lines[0]).not.toContain('hidden')
    },
  )

  it.skipIf(!existsSync('/dev/full'))(
    'buffers lines while the disk is full, drops further ones, and writes the buffered lines later',
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'strandfast-log-'))
      const fds = [openSync('/dev/full', 'w'), openSync(join(folder, 'log'), 'w')] as const
      const to = logDestination(fds[0])
      const log = createLogger('info', 'front', to)
      const filling = 'x'.repeat(1_000)
      const count = 2 * Math.ceil(limits.logWaitingBytesMax / 1_000)
      for (let number = 0; number < count; number += 1) log.info({ number }, filling)
      // A private member of the library: the disk has space again.
      Reflect.set(to, 'fd', fds[1])
      for (const number of [-1, -2]) log.info({ number }, 'later')
      const lines = readFileSync(join(folder, 'log'), 'utf8').trimEnd().split('\n')
      for (const fd of fds) closeSync(fd)
      rmSync(folder, { recursive: true })
      const numbers = lines.map((line) => Number(Object(JSON.parse(line)).number))
      expect(numbers.at(-1)).toBe(-2)
      expect(numbers.slice(0, -2)).toEqual(numbers.slice(0, -2).map((_, index) => index))
      expect(numbers.length).toBeGreaterThan(count / 3)
      expect(numbers.length).toBeLessThan(count)
    },
  )
})
