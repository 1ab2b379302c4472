import { describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/settings/config.js'
import type { Environment } from '../../../src/settings/setting.js'

const given = { SERVICE_WEBAUTHN_RP_ID: 'example.com', SERVICE_WEBAUTHN_ORIGIN: 'https://app.example.com' }

function faultyNames(env: Environment): string[] {
  const reading = readConfig(env)
  return reading.ok ? [] : reading.faults.map(({ name }) => name)
}

function passkeysOf(env: Environment) {
  const reading = readConfig(env)
  if (!reading.ok) throw new Error(`Expected valid settings, got ${JSON.stringify(reading.faults)}`)
  return reading.config.passkeys
}

describe('the settings of passkeys', () => {
  it('define the relying party, with the given or the default name', () => {
    const party = { rpId: 'example.com', origin: 'https://app.example.com', name: 'Strandfast' }
    expect(passkeysOf(given)).toEqual(party)
    expect(passkeysOf({ ...given, SERVICE_WEBAUTHN_RP_NAME: 'Müller & Söhne' })).toEqual({
      ...party,
      name: 'Müller & Söhne',
    })
  })

  it.each([
    ['example.com', 'https://example.com'],
    ['EXAMPLE.com', 'https://example.com:8443'],
    ['example.com', 'https://a.b.example.com'],
    ['localhost', 'http://localhost'],
    ['localhost', 'http://localhost:3000'],
    ['localhost', 'https://localhost:3000'],
    ['localhost', 'http://app.localhost:3000'],
    ['xn--bcher-kva.example', 'https://xn--bcher-kva.example'],
  ])('accept the domain %s with the origin %s', (rpId, origin) => {
    const env = { SERVICE_WEBAUTHN_RP_ID: rpId, SERVICE_WEBAUTHN_ORIGIN: origin }
    expect(passkeysOf(env)).toMatchObject({ rpId: rpId.toLowerCase(), origin })
  })

  it.each([
    ['SERVICE_WEBAUTHN_RP_ID', 'https://example.com'],
    ['SERVICE_WEBAUTHN_RP_ID', 'example.com:443'],
    ['SERVICE_WEBAUTHN_RP_ID', 'example.com/'],
    ['SERVICE_WEBAUTHN_RP_ID', 'example.com.'],
    ['SERVICE_WEBAUTHN_RP_ID', '.example.com'],
    ['SERVICE_WEBAUTHN_RP_ID', '*.example.com'],
    ['SERVICE_WEBAUTHN_RP_ID', '127.0.0.1'],
    ['SERVICE_WEBAUTHN_RP_ID', '[::1]'],
    ['SERVICE_WEBAUTHN_RP_ID', 'bücher.example'],
    ['SERVICE_WEBAUTHN_ORIGIN', 'http://example.com'],
    ['SERVICE_WEBAUTHN_ORIGIN', 'http://127.0.0.1:3000'],
    ['SERVICE_WEBAUTHN_ORIGIN', 'http://localhost.example.com'],
    ['SERVICE_WEBAUTHN_ORIGIN', 'https://192.0.2.1'],
    ['SERVICE_WEBAUTHN_ORIGIN', 'https://example.com/'],
    ['SERVICE_WEBAUTHN_ORIGIN', 'https://example.com:443'],
    ['SERVICE_WEBAUTHN_ORIGIN', 'example.com'],
    ['SERVICE_WEBAUTHN_ORIGIN', 'https://*.example.com'],
    ['SERVICE_WEBAUTHN_RP_NAME', 'two\nlines'],
    ['SERVICE_WEBAUTHN_RP_NAME', 'x'.repeat(65)],
  ])('refuse %s=%j', (name, value) => {
    expect(faultyNames({ [name]: value })).toEqual([name])
  })

  it.each([
    'https://example.org',
    'https://notexample.com',
    'https://example.com.evil.test',
    'http://localhost',
  ])('refuse the origin %s outside the domain', (origin) => {
    expect(faultyNames({ ...given, SERVICE_WEBAUTHN_ORIGIN: origin })).toEqual(['SERVICE_WEBAUTHN_ORIGIN'])
  })

  it('define no relying party and cause a warning if one of the two is missing', () => {
    expect(passkeysOf({ SERVICE_WEBAUTHN_RP_NAME: 'Us' })).toBeUndefined()
    for (const [name, value] of Object.entries(given)) {
      const reading = readConfig({ [name]: value })
      expect(reading.ok && reading.config).not.toHaveProperty('passkeys')
      expect(reading.warnings).toEqual([expect.stringContaining(`${name} is set without`)])
    }
    expect(readConfig(given).warnings).toEqual([])
  })
})
