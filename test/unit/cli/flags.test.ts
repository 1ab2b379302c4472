import { describe, expect, it } from 'vitest'
import { settings } from '../../../src/settings/config.js'
import { describeFlags, flagOf, namedByFlags, readFlags } from '../../../src/cli/read-settings.js'
import type { Setting } from '../../../src/settings/setting.js'

const all: Setting<unknown>[] = Object.values(settings)
const [secrets, open] = [true, false].map((secret) => all.filter((one) => (one.secret === true) === secret))

describe('flags of settings', () => {
  it('exist for each setting but secrets, by its name', () => {
    expect(flagOf('SERVICE_TLS_CERT_FILE')).toBe('--tls-cert-file')
    for (const { name } of open ?? []) {
      expect(readFlags([`${flagOf(name)}=x`])).toEqual({ ok: true, given: { [name]: 'x' } })
      expect(describeFlags()).toMatch(new RegExp(`^ {2}${flagOf(name)} `, 'm'))
    }
    expect(secrets?.length).toBeGreaterThan(3)
    for (const { name } of secrets ?? []) {
      const refused = { ok: false, fault: expect.stringContaining(`so set ${name}`) }
      expect(readFlags([`${flagOf(name)}=x`])).toEqual(refused)
      expect(readFlags([flagOf(name), 'x'])).toEqual(refused)
      expect(describeFlags()).not.toContain(`${flagOf(name)} `)
    }
  })

  it('take a value after a space or an equals sign, and true where one of true or false stands alone', () => {
    expect(readFlags(['--port', '1', '--data-open', '--host=::1', '--auth-enabled', 'false'])).toEqual({
      ok: true,
      given: {
        SERVICE_PORT: '1',
        SERVICE_DATA_OPEN: 'true',
        SERVICE_HOST: '::1',
        SERVICE_AUTH_ENABLED: 'false',
      },
    })
    expect(readFlags(['--auth-enabled'])).toEqual({ ok: true, given: { SERVICE_AUTH_ENABLED: 'true' } })
    expect(readFlags([])).toEqual({ ok: true, given: {} })
  })

  it('are refused without a value, twice, unknown, or beside other arguments', () => {
    expect(readFlags(['--port']).ok).toBe(false)
    expect(readFlags(['--explode'])).toEqual({ ok: false, fault: 'Unknown option --explode' })
    expect(readFlags(['--shard', '2'])).toEqual({
      ok: false,
      fault: 'Unknown option --shard (was --shards meant?)',
    })
    expect(readFlags(['stray']).ok).toBe(false)
    expect(readFlags(['--port', '1', '--port=2'])).toEqual({ ok: false, fault: 'Expected --port once' })
  })

  it('name the faults of what they gave, and of nothing else', () => {
    const faults = ['SERVICE_PORT', 'SERVICE_HOST'].map((name) => ({ name, given: 'x', allowed: 'y' }))
    expect(namedByFlags(faults, { SERVICE_PORT: 'x' }).map(({ name }) => name)).toEqual([
      '--port',
      'SERVICE_HOST',
    ])
  })
})
