import { describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/settings/config.js'
import type { Environment } from '../../../src/settings/setting.js'
import type { OauthConfig } from '../../../src/settings/oauth.js'

const google = { SERVICE_OAUTH_GOOGLE_CLIENT_ID: 'g-id', SERVICE_OAUTH_GOOGLE_CLIENT_SECRET: 'g-secret' }
const github = { SERVICE_OAUTH_GITHUB_CLIENT_ID: 'h-id', SERVICE_OAUTH_GITHUB_CLIENT_SECRET: 'h-secret' }
const around = {
  SERVICE_OAUTH_REDIRECT_BASE_URL: 'https://auth.example.com',
  SERVICE_OAUTH_ALLOWED_REDIRECT_URIS: 'https://app.example.com/cb, http://localhost:3000',
}
const on = { SERVICE_AUTH_ENABLED: 'true', SERVICE_LICENSE_KEY: 'a.b.c' }
const production = { SERVICE_ENV: 'production', SERVICE_MAIL_ENABLED: 'true' }

function valid(env: Environment): OauthConfig | undefined {
  const reading = readConfig(env)
  if (!reading.ok) throw new Error(`Expected valid settings, got ${JSON.stringify(reading.faults)}`)
  return reading.config.oauth
}

function faultyNames(env: Environment): string[] {
  const reading = readConfig({ ...env, SERVICE_MAIL_ENABLED: 'false' })
  return reading.ok ? [] : reading.faults.map(({ name }) => name)
}

describe('the settings of sign-in with providers', () => {
  it('are absent when nothing is set, and otherwise read into the configuration', () => {
    expect(valid({})).toBeUndefined()
    const oauth = valid({ ...google, ...github, ...around })
    expect(oauth).toEqual({
      google: { clientId: 'g-id', clientSecret: 'g-secret', issuerUrl: 'https://accounts.google.com' },
      github: {
        clientId: 'h-id',
        clientSecret: 'h-secret',
        baseUrl: 'https://github.com',
        apiUrl: 'https://api.github.com',
      },
      redirectBaseUrl: 'https://auth.example.com',
      allowedRedirectUris: ['https://app.example.com/cb', 'http://localhost:3000'],
      allowAnyRedirectUri: false,
    })
    expect(Object.isFrozen(oauth)).toBe(true)
  })

  it('do not send the tokens of another GitHub server to github.com', () => {
    const enterprise = { ...github, SERVICE_OAUTH_GITHUB_BASE_URL: 'https://git.example.com/' }
    expect(valid(enterprise)?.github).toMatchObject({
      baseUrl: 'https://git.example.com',
      apiUrl: 'https://git.example.com/api/v3',
    })
    const api = 'https://api.git.example.com'
    expect(valid({ ...enterprise, SERVICE_OAUTH_GITHUB_API_URL: api })?.github?.apiUrl).toBe(api)
  })

  it.each([
    ['SERVICE_OAUTH_REDIRECT_BASE_URL', 'auth.example.com'],
    ['SERVICE_OAUTH_REDIRECT_BASE_URL', 'https://auth.example.com/?x=1'],
    // The address that is registered with a provider is compared as text.
    ['SERVICE_OAUTH_REDIRECT_BASE_URL', 'https://Auth.example.com'],
    ['SERVICE_OAUTH_REDIRECT_BASE_URL', 'https://auth.example.com:443'],
    ['SERVICE_OAUTH_REDIRECT_BASE_URL', 'https://bücher.example.com'],
    ['SERVICE_OAUTH_REDIRECT_BASE_URL', 'https://auth.example.com/a/../b'],
    ['SERVICE_OAUTH_ALLOWED_REDIRECT_URIS', 'app.example.com'],
    ['SERVICE_OAUTH_ALLOWED_REDIRECT_URIS', 'https://app.example.com/cb,https://user@app.example.com'],
    ['SERVICE_OAUTH_ALLOWED_REDIRECT_URIS', 'https://app.example.com/../cb'],
    ['SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI', 'yes'],
    ['SERVICE_OAUTH_GOOGLE_ISSUER_URL', 'accounts.google.com'],
    ['SERVICE_OAUTH_GITHUB_BASE_URL', 'ftp://github.com'],
    ['SERVICE_OAUTH_GITHUB_API_URL', 'https://token@api.github.com'],
  ])('refuse %s=%j', (name, value) => {
    expect(faultyNames({ [name]: value })).toEqual([name])
  })

  it('require id and secret of a provider together, and show no secret', () => {
    expect(faultyNames({ SERVICE_OAUTH_GOOGLE_CLIENT_ID: 'x' })).toEqual([
      'SERVICE_OAUTH_GOOGLE_CLIENT_SECRET',
    ])
    expect(faultyNames({ SERVICE_OAUTH_GITHUB_CLIENT_SECRET: 'x' })).toEqual([
      'SERVICE_OAUTH_GITHUB_CLIENT_ID',
    ])
    const reading = readConfig({ ...google, SERVICE_OAUTH_GOOGLE_CLIENT_SECRET: 'hunter2\u0007' })
    expect(JSON.stringify(reading)).not.toContain('hunter2')
  })

  it('refuse values for development in production', () => {
    const any = { SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI: 'true' }
    expect(faultyNames(any)).toEqual([])
    expect(faultyNames({ ...production, ...any })).toEqual(['SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI'])
    const issuer = { SERVICE_OAUTH_GOOGLE_ISSUER_URL: 'http://id.example.com' }
    expect(faultyNames(issuer)).toEqual([])
    expect(faultyNames({ ...production, ...issuer })).toEqual(['SERVICE_OAUTH_GOOGLE_ISSUER_URL'])
    expect(faultyNames({ ...production, SERVICE_OAUTH_GOOGLE_ISSUER_URL: 'http://127.0.0.1:9000' })).toEqual(
      [],
    )
  })

  it('cause warnings if they are allowed but rarely intended', () => {
    const warnings = (env: Environment) =>
      readConfig({ ...on, ...env }).warnings.filter((text) => !text.includes('MAIL'))
    expect(warnings({ ...google, ...around })).toEqual([])
    expect(warnings({ ...google, ...around, SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI: 'true' })).toEqual([
      expect.stringContaining('SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI=true'),
    ])
    expect(warnings(google)).toEqual([
      expect.stringContaining('SERVICE_OAUTH_REDIRECT_BASE_URL is not set'),
      expect.stringContaining('SERVICE_OAUTH_ALLOWED_REDIRECT_URIS is not set'),
    ])
    const open = {
      ...around,
      SERVICE_ENV: 'production',
      SERVICE_OAUTH_REDIRECT_BASE_URL: 'http://auth.example.com',
    }
    expect(warnings({ ...google, ...open })).toContainEqual(
      expect.stringContaining('is not https in production'),
    )
    expect(readConfig(google).warnings).toEqual([])
  })
})
