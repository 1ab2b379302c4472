import { describe, expect, it } from 'vitest'
import { createLogger } from '../../../src/base/log.js'

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
    'shows no %s, at the top or within',
    (name) => {
      const lines: string[] = []
      const log = createLogger('info', 'front', { write: (line) => lines.push(line) })
      log.info({ [name]: 'hidden', request: { [name]: 'hidden', headers: { [name]: 'hidden' } } }, 'seen')
      expect(lines[0]).toContain('seen')
      expect(lines[0]).not.toContain('hidden')
    },
  )
})
