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
    const party = { rpId: 'example.com', origins: ['https://app.example.com'], name: 'Strandfast' }
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
    expect(passkeysOf(env)).toMatchObject({ rpId: rpId.toLowerCase(), origins: [origin] })
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

  const android = `android:apk-key-hash:${'A-_4'.repeat(10)}abc`

  it('accept several origins: of pages, of related pages on other domains, and of Android apps', () => {
    const origins = ['https://app.example.com', 'https://example.co.uk', android]
    const env = { ...given, SERVICE_WEBAUTHN_ORIGIN: origins.join(' , ') }
    expect(passkeysOf(env)?.origins).toEqual(origins)
    expect(passkeysOf({ ...given, SERVICE_WEBAUTHN_ORIGIN: android })?.origins).toEqual([android])
  })

  it.each([
    ['related pages without a page within the domain', `https://example.co.uk,${android}`],
    ['a related page of this machine', 'https://app.example.com,http://localhost:3000'],
    ['an app without the hash of its certificate', 'https://app.example.com,android:apk-key-hash:'],
    ['an app with a hash in hex', `https://app.example.com,android:apk-key-hash:${'a'.repeat(64)}`],
    ['an app by its name', 'https://app.example.com,android:com.example.app'],
    ['a page beside a name without a scheme', 'https://app.example.com,example.com'],
    ['an empty item', 'https://app.example.com,,https://example.com'],
  ])('refuse %s', (_what, origins) => {
    expect(faultyNames({ ...given, SERVICE_WEBAUTHN_ORIGIN: origins })).toEqual(['SERVICE_WEBAUTHN_ORIGIN'])
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
