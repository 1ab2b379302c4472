import { describe, expect, it } from 'vitest'
import { type Config, readConfig } from '../../../src/settings/config.js'
import { openModes } from '../../../src/settings/open-modes.js'
import type { Environment } from '../../../src/settings/setting.js'

const mail = {
  SERVICE_MAIL_ENABLED: 'true',
  SERVICE_MAIL_SMTP_URL: 'smtps://user:hunter2@mail.example.com:465',
  SERVICE_MAIL_FROM: 'The Service <no-reply@example.com>',
  SERVICE_MAIL_LINK_BASE_URL: 'https://app.example.com/account',
}
const licensed = { SERVICE_AUTH_ENABLED: 'true', SERVICE_LICENSE_KEY: 'a.b.c' }

function valid(env: Environment): Config {
  const reading = readConfig(env)
  if (!reading.ok) throw new Error(`Expected valid settings, got ${JSON.stringify(reading.faults)}`)
  return reading.config
}

function faultyNames(env: Environment): string[] {
  const reading = readConfig(env)
  return reading.ok ? [] : reading.faults.map(({ name }) => name)
}

describe('the settings of the auth add-on', () => {
  it('are read into the configuration', () => {
    const { auth } = valid({
      ...licensed,
      SERVICE_LICENSE_PUBLIC_KEY: 'AB'.repeat(32),
      SERVICE_AUTH_ISSUER: 'https://auth.example.com',
      SERVICE_AUTH_JWT_EXPIRY_SECS: '1',
      SERVICE_AUTH_MAGIC_LINK_EXPIRY_SECS: '2',
      SERVICE_AUTH_REFRESH_TOKEN_EXPIRY_SECS: '3',
      SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: '4',
      SERVICE_AUTH_LOCKOUT_DURATION_SECS: '5',
      SERVICE_AUTH_METADATA_MAX_BYTES: '60',
      SERVICE_AUTH_REQUIRE_EMAIL_VERIFY: 'true',
      SERVICE_AUTH_RATE_LIMIT_RPS: '0',
      SERVICE_AUTH_RATE_LIMIT_BURST: '0',
      SERVICE_AUTH_PASSWORD_BLOCKLIST: 'false',
    })
    expect(auth).toEqual({
      enabled: true,
      licenseKey: 'a.b.c',
      licensePublicKey: 'ab'.repeat(32),
      issuer: 'https://auth.example.com',
      jwtExpirySecs: 1,
      magicLinkExpirySecs: 2,
      refreshTokenExpirySecs: 3,
      maxLoginAttempts: 4,
      lockoutDurationSecs: 5,
      metadataBytesMax: 60,
      requireEmailVerify: true,
      rateLimitRps: 0,
      rateLimitBurst: 0,
      passwordBlocklist: false,
    })
    expect(Object.isFrozen(auth)).toBe(true)
  })

  it.each([
    ['SERVICE_AUTH_ENABLED', 'yes'],
    ['SERVICE_LICENSE_PUBLIC_KEY', 'ab'.repeat(31)],
    ['SERVICE_AUTH_ISSUER', 'two words'],
    ['SERVICE_AUTH_JWT_EXPIRY_SECS', '0'],
    ['SERVICE_AUTH_MAGIC_LINK_EXPIRY_SECS', '0'],
    ['SERVICE_AUTH_REFRESH_TOKEN_EXPIRY_SECS', '0'],
    ['SERVICE_AUTH_MAX_LOGIN_ATTEMPTS', '0'],
    ['SERVICE_AUTH_LOCKOUT_DURATION_SECS', '0'],
    ['SERVICE_AUTH_METADATA_MAX_BYTES', '8193'],
    ['SERVICE_AUTH_REQUIRE_EMAIL_VERIFY', '1'],
    ['SERVICE_AUTH_RATE_LIMIT_RPS', '-1'],
    ['SERVICE_AUTH_RATE_LIMIT_BURST', '2.5'],
    ['SERVICE_AUTH_PASSWORD_BLOCKLIST', 'off'],
    ['SERVICE_MAIL_SMTP_URL', 'https://mail.example.com'],
    ['SERVICE_MAIL_SMTP_URL', 'mail.example.com:25'],
    ['SERVICE_MAIL_SMTP_URL', 'smtp://'],
    ['SERVICE_MAIL_FROM', 'no-address'],
    ['SERVICE_MAIL_FROM', 'a@example.com, b@example.com'],
    ['SERVICE_MAIL_FROM', 'Name <a@example.com>\r\nBcc: b@example.com'],
    ['SERVICE_MAIL_LINK_BASE_URL', 'app.example.com'],
    ['SERVICE_MAIL_LINK_BASE_URL', 'javascript:alert(1)'],
    ['SERVICE_MAIL_LINK_BASE_URL', 'https://app.example.com/?page='],
    ['SERVICE_MAIL_LINK_BASE_URL', 'https://app.example.com/#/'],
    ['SERVICE_MAIL_LINK_BASE_URL', 'https://user:pass@app.example.com'],
  ])('refuses %s=%j', (name, value) => {
    expect(faultyNames({ [name]: value })).toEqual([name])
  })

  it('refuses a refresh token that expires before the access token', () => {
    const faults = (env: Environment) => {
      const reading = readConfig(env)
      return reading.ok ? [] : reading.faults
    }
    expect(faults({ SERVICE_AUTH_REFRESH_TOKEN_EXPIRY_SECS: '3600' })).toEqual([])
    const fault = {
      name: 'SERVICE_AUTH_REFRESH_TOKEN_EXPIRY_SECS',
      allowed: expect.stringContaining('at least SERVICE_AUTH_JWT_EXPIRY_SECS'),
    }
    expect(faults({ SERVICE_AUTH_REFRESH_TOKEN_EXPIRY_SECS: '3599' })).toEqual([
      { ...fault, given: '3599, with SERVICE_AUTH_JWT_EXPIRY_SECS 3600' },
    ])
    expect(faults({ SERVICE_AUTH_JWT_EXPIRY_SECS: '2592001' })).toEqual([
      { ...fault, given: '2592000, with SERVICE_AUTH_JWT_EXPIRY_SECS 2592001' },
    ])
  })

  it('does not verify a wrong license', () => {
    expect(valid({ SERVICE_LICENSE_KEY: 'no license\n' }).auth.licenseKey).toBe('no license')
  })

  it('warns about the add-on without a license', () => {
    expect(readConfig({ ...licensed, ...mail }).warnings).toEqual([])
    expect(readConfig({ SERVICE_AUTH_ENABLED: 'true', ...mail }).warnings).toEqual([
      'SERVICE_LICENSE_KEY is not set: every auth route answers 402',
    ])
  })

  it.each(['127.0.0.1', '127.9.9.9', '::1', 'localhost'])(
    'allow any program of this machine to receive links on %s while mail is off',
    (host) => {
      const reading = readConfig({ ...licensed, SERVICE_HOST: host })
      expect(reading.warnings).toEqual([
        expect.stringContaining('anyone on this machine can sign in as any user'),
      ])
      expect(openModes(valid({ ...licensed, SERVICE_HOST: host }))).toEqual(reading.warnings)
    },
  )

  it.each([
    { SERVICE_HOST: '0.0.0.0' },
    { SERVICE_HOST: '::' },
    { SERVICE_HOST: '192.0.2.1' },
    { SERVICE_HOST: 'app.example.com' },
    { SERVICE_HOST: 'localhost.example.com' },
    { SERVICE_ENV: 'production' },
  ])('restrict links to the root key with %j while mail is off', (env) => {
    expect(readConfig({ ...licensed, ...env }).warnings).toEqual([
      'SERVICE_MAIL_ENABLED is not true: only answers to the root key contain the tokens of links',
    ])
    expect(openModes(valid({ ...licensed, ...env }))).toEqual([])
  })
})

describe('the settings of mail', () => {
  it('are in the configuration when mail is on', () => {
    expect(valid(mail).mail).toEqual({
      smtpUrl: 'smtps://user:hunter2@mail.example.com:465',
      from: 'The Service <no-reply@example.com>',
      linkBaseUrl: 'https://app.example.com/account',
    })
    expect(valid({ ...mail, SERVICE_MAIL_FROM: "o'no-reply@example.com" }).mail?.from).toBe(
      "o'no-reply@example.com",
    )
  })

  it('are ignored while mail is off', () => {
    expect(valid({ ...mail, SERVICE_MAIL_ENABLED: 'false' }).mail).toBeUndefined()
    expect(valid({ SERVICE_MAIL_FROM: 'a@example.com' })).not.toHaveProperty('mail')
  })

  it('are all required when mail is on, and missing ones are reported together', () => {
    const reading = readConfig({ SERVICE_MAIL_ENABLED: 'true' })
    expect(reading).toMatchObject({
      ok: false,
      faults: [
        { name: 'SERVICE_MAIL_SMTP_URL', given: 'nothing' },
        { name: 'SERVICE_MAIL_FROM', given: 'nothing' },
        { name: 'SERVICE_MAIL_LINK_BASE_URL', given: 'nothing' },
      ],
    })
    const { SERVICE_MAIL_FROM: _from, ...others } = mail
    expect(faultyNames(others)).toEqual(['SERVICE_MAIL_FROM'])
  })

  it('show only the length of the URL with credentials', () => {
    const reading = readConfig({ SERVICE_MAIL_SMTP_URL: 'smpt://user:hunter2@mail.example.com' })
    expect(reading).toMatchObject({ faults: [{ given: '36 characters' }] })
  })

  it('cause warnings in production if the add-on is on and mail is off, or links are not https', () => {
    const production = { ...licensed, SERVICE_ENV: 'production' }
    expect(readConfig(production).warnings).toEqual([expect.stringContaining('SERVICE_MAIL_ENABLED')])
    expect(readConfig({ ...production, ...mail }).warnings).toEqual([])
    expect(
      readConfig({ ...production, ...mail, SERVICE_MAIL_LINK_BASE_URL: 'http://app.example.com' }).warnings,
    ).toEqual([expect.stringContaining('SERVICE_MAIL_LINK_BASE_URL')])
    expect(readConfig({ SERVICE_ENV: 'production' }).warnings).toEqual([])
  })
})
