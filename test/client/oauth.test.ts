import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ServiceClient, ServiceError } from '../../src/client/index.js'

const url = 'https://records.example.com'
const results = 'token=a.b.c&refresh_token=r-1&token_type=Bearer&expires_in=3600&email=ada%40example.org'
const signedIn = { token: 'a.b.c', refresh_token: 'r-1', expires_in: 3_600, email: 'ada@example.org' }

let client: ServiceClient
/** The address in the address bar. */
let shown: string

beforeEach(() => {
  client = new ServiceClient({ url })
})

afterEach(() => vi.unstubAllGlobals())

/** Opens a page in the browser. */
function open(address: string): void {
  shown = address
  vi.stubGlobal('location', { href: address })
  vi.stubGlobal('history', {
    state: { of: 'the page' },
    replaceState(state: unknown, _title: string, next: string) {
      expect(state).toEqual({ of: 'the page' })
      shown = next
    },
  })
}

function codeOf(take: () => unknown): string | undefined {
  try {
    take()
    return undefined
  } catch (error) {
    if (error instanceof ServiceError) return `${error.status} ${error.code}: ${error.message}`
    throw error
  }
}

describe('the address at which a sign-in starts', () => {
  it('is the provider’s route in the client’s namespace', () => {
    const redirectUri = 'https://app.example.com/cb?next=/x&y=1'
    const { oauth } = client.auth
    expect(oauth.authorizeUrl('github', { redirectUri })).toBe(
      `${url}/v1/auth/oauth/github/authorize?redirect_uri=${encodeURIComponent(redirectUri)}`,
    )
    const inAcme = new ServiceClient({ url: `${url}/`, organism: 'acme' }).auth.oauth
    expect(inAcme.authorizeUrl('google', { redirectUri: 'https://a.example', mode: 'fragment' })).toBe(
      `${url}/v1/organisms/acme/auth/oauth/google/authorize?redirect_uri=https%3A%2F%2Fa.example&redirect_mode=fragment`,
    )
  })
})

describe('the page to which the user returns', () => {
  it('signs in by the fragment and cleans the address bar', () => {
    open(`https://app.example.com/cb?next=%2Fx#${results}`)
    const sessions: unknown[] = []
    client.auth.onSessionChange((session) => void sessions.push(session))
    expect(client.auth.oauth.takeFromFragment()).toEqual(signedIn)
    expect(shown).toBe('https://app.example.com/cb?next=%2Fx')
    expect(client.auth.session).toMatchObject({ token: 'a.b.c', refresh_token: 'r-1' })
    expect(sessions).toHaveLength(1)
  })

  it('signs in by the query and does not change other parameters', () => {
    open(`https://app.example.com/cb?next=%2Fa%20b+c&${results}&flag#place`)
    expect(client.auth.oauth.takeFromQuery()).toEqual(signedIn)
    expect(shown).toBe('https://app.example.com/cb?next=%2Fa%20b+c&flag#place')
  })

  it('does not change when its address contains no result of a sign-in', () => {
    for (const address of [
      'https://app.example.com/cb',
      'https://app.example.com/cb?token=x#section',
      'https://app.example.com/cb?error=of+the+application#error=other',
      `https://app.example.com/cb?${results.replace('3600', 'soon')}#${results.replace('r-1', '')}`,
    ]) {
      open(address)
      expect(client.auth.oauth.takeFromFragment()).toBeUndefined()
      expect(client.auth.oauth.takeFromQuery()).toBeUndefined()
      expect(shown).toBe(address)
    }
    expect(client.auth.session).toBeUndefined()
  })

  it('throws an error that says why a sign-in failed, and keeps the current session', () => {
    client.auth.setSession({ token: 'mine', refresh_token: 'r-0' })
    const refused = 'error=access_denied&error_description=The+provider+has+not+verified+the+e-mail'
    open(`https://app.example.com/cb#${refused}`)
    expect(codeOf(() => client.auth.oauth.takeFromFragment())).toBe(
      '401 access_denied: The provider has not verified the e-mail',
    )
    expect(shown).toBe('https://app.example.com/cb')
    open('https://app.example.com/cb?error=temporarily_unavailable')
    expect(codeOf(() => client.auth.oauth.takeFromQuery())).toMatch(/^401 temporarily_unavailable: /)
    expect(client.auth.session?.token).toBe('mine')
  })
})

describe('the server to which the user returns', () => {
  it('signs in by the requested address, with or without a host', () => {
    for (const address of [`/cb?${results}`, new URL(`https://app.example.com/cb?${results}`)]) {
      const own = new ServiceClient({ url })
      expect(own.auth.oauth.takeFromQuery(address)).toEqual(signedIn)
      expect(own.auth.session?.token).toBe('a.b.c')
    }
    expect(client.auth.oauth.takeFromQuery('/cb')).toBeUndefined()
  })
})
