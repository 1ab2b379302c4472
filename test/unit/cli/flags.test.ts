import { describe, expect, it } from 'vitest'
import { settings } from '../../../src/settings/config.js'
import { describeFlags, flagOf, namedByFlags, readFlags } from '../../../src/cli/read-settings.js'
import type { Setting } from '../../../src/settings/setting.js'

const all: Setting<unknown>[] = Object.values(settings)
const [secrets, open] = [true, false].map((secret) =>
  all.filter((setting) => (setting.secret === true) === secret),
)

describe('flags of settings', () => {
  it('exist for each setting except secrets, named after it', () => {
    expect(flagOf('SERVICE_TLS_CERT_FILE')).toBe('--tls-cert-file')
    for (const { name } of open ?? []) {
      expect(readFlags([`${flagOf(name)}=x`])).toEqual({ ok: true, given: { [name]: 'x' } })
      expect(describeFlags()).toMatch(new RegExp(`^ {2}${flagOf(name)} `, 'm'))
    }
    expect(secrets?.length).toBeGreaterThan(3)
    for (const { name } of secrets ?? []) {
      const refused = { ok: false, fault: expect.stringContaining(`set ${name} instead`) }
      expect(readFlags([`${flagOf(name)}=x`])).toEqual(refused)
      expect(readFlags([flagOf(name), 'x'])).toEqual(refused)
      expect(describeFlags()).not.toContain(`${flagOf(name)} `)
    }
  })

  it('take a value after a space or an equals sign, and mean true if they are boolean and have no value', () => {
    expect(readFlags(['--port', '1', '--mail-enabled', '--host=::1', '--auth-enabled', 'false'])).toEqual({
      ok: true,
      given: {
        SERVICE_PORT: '1',
        SERVICE_MAIL_ENABLED: 'true',
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
      fault: 'Unknown option --shard (did you mean --shards?)',
    })
    expect(readFlags(['stray']).ok).toBe(false)
    expect(readFlags(['--port', '1', '--port=2'])).toEqual({ ok: false, fault: 'Expected --port once' })
  })

  it('replace the names of settings in faults if the values came from flags', () => {
    const faults = ['SERVICE_PORT', 'SERVICE_HOST'].map((name) => ({ name, given: 'x', allowed: 'y' }))
    expect(namedByFlags(faults, { SERVICE_PORT: 'x' }).map(({ name }) => name)).toEqual([
      '--port',
      'SERVICE_HOST',
    ])
  })
})
