import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { usualPassword } from '../support/auth/accounts.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { type StaticServer, startStaticServer } from '../support/server/static-server.js'

declare global {
  /** The client module in the page. */
  var strandfast: typeof import('../../src/client/index.js')
  /** A client of the service, kept between calls into the page. */
  var client: InstanceType<typeof import('../../src/client/index.js').ServiceClient>
}

const PAGE = `<!doctype html>
<script type="module">import * as client from '/packages/client/dist/index.js'; globalThis.strandfast = client</script>`

/** The same pages at localhost, the only host name for which browsers allow passkeys without TLS. */
const localOrigin = ({ origin }: StaticServer) => origin.replace('127.0.0.1', 'localhost')

/** A passkey in the virtual authenticator. */
interface VirtualCredential {
  credentialId: string
  isResidentCredential: boolean
  rpId?: string
  privateKey: string
  userHandle?: string
  signCount: number
}

describe.skipIf(noBrowser)('passkeys in a browser', () => {
  let pages: StaticServer
  let otherPages: StaticServer
  let service: Awaited<ReturnType<typeof startAuthServer>>
  let browser: Browser
  let context: BrowserContext
  let page: Page
  let devtools: CDPSession
  let authenticatorId: string
  let users = 0

  beforeAll(async () => {
    pages = await startStaticServer(PAGE)
    otherPages = await startStaticServer(PAGE)
    service = await startAuthServer({
      env: {
        SERVICE_CORS_ORIGINS: `${localOrigin(pages)},${localOrigin(otherPages)}`,
        SERVICE_WEBAUTHN_RP_ID: 'localhost',
        SERVICE_WEBAUTHN_ORIGIN: localOrigin(pages),
      },
    })
    browser = await sharedBrowser()
  })

  afterAll(async () => {
    await service?.stop()
    pages?.stop()
    otherPages?.stop()
  })

  beforeEach(async () => {
    await context?.close()
    context = await browser.newContext()
    page = await context.newPage()
    devtools = await context.newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    authenticatorId = await plugIn()
    await open(pages)
  })

  /** Adds an authenticator without passkeys that verifies its user. */
  async function plugIn(): Promise<string> {
    const options = {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    } as const
    return (await devtools.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId
  }

  async function open(from: StaticServer): Promise<void> {
    await page.goto(`${localOrigin(from)}/`)
    await page.waitForFunction(() => 'strandfast' in globalThis)
    await page.evaluate((url) => {
      globalThis.client = new strandfast.ServiceClient({ url })
    }, service.url)
  }

  const credentials = async (): Promise<VirtualCredential[]> =>
    (await devtools.send('WebAuthn.getCredentials', { authenticatorId })).credentials

  /** Registers a user with a passkey, and signs out. */
  async function userWithPasskey(): Promise<string> {
    const email = `user-${users++}@example.org`
    await page.evaluate(
      async (given) => {
        await client.auth.register(given)
        await client.auth.passkeys.register()
        await client.auth.logout()
      },
      { email, password: usualPassword },
    )
    return email
  }

  /** Signs in. @returns the e-mail of the session, or the error */
  const signIn = (email?: string) =>
    page.evaluate(async (address) => {
      try {
        await client.auth.passkeys.signIn(address)
        return (await client.auth.me()).email
      } catch (error) {
        if (error instanceof strandfast.ServiceError) return `${error.status} ${error.code}`
        return error instanceof DOMException ? error.name : String(error)
      }
    }, email)

  it('are registered, and sign in with or without an e-mail', async () => {
    const email = await userWithPasskey()
    const [passkey] = await credentials()
    expect(passkey).toMatchObject({ isResidentCredential: true, rpId: 'localhost' })
    expect(await signIn(email)).toBe(email)
    expect(await signIn()).toBe(email)
    const listed = await page.evaluate(async () => (await client.auth.passkeys.list()).passkeys)
    const id = Buffer.from(passkey?.credentialId ?? '', 'base64').toString('base64url')
    expect(listed).toMatchObject([{ id, last_used_at_ms: expect.any(Number) }])
  })

  it('are created only once per authenticator and user', async () => {
    await userWithPasskey()
    expect(await signIn()).toMatch(/@/)
    const again = page.evaluate(() =>
      client.auth.passkeys.register().catch((error: { name: string }) => error.name),
    )
    expect(await again).toBe('InvalidStateError')
  })

  it('do not sign in after they were deleted', async () => {
    const email = await userWithPasskey()
    await signIn(email)
    await page.evaluate(async () => {
      const { passkeys } = await client.auth.passkeys.list()
      for (const { id } of passkeys) await client.auth.passkeys.delete(id)
    })
    // Without an e-mail: with one, the browser would find no allowed passkey and send nothing to the service.
    expect(await signIn()).toBe('401 passkey_failed')
  })

  it('are refused when an assertion is replayed', async () => {
    const email = await userWithPasskey()
    const seen = await page.evaluate(
      async ({ url, address }) => {
        const bodies: string[] = []
        const listening: typeof fetch = (input, init) => {
          if (String(input).endsWith('/passkey/authenticate')) bodies.push(String(init?.body))
          return fetch(input, init)
        }
        await new strandfast.ServiceClient({ url, fetch: listening }).auth.passkeys.signIn(address)
        const headers = { 'content-type': 'application/json' }
        const [body = ''] = bodies
        const again = await fetch(`${url}/v1/auth/passkey/authenticate`, { method: 'POST', headers, body })
        return `${again.status} ${(await again.json()).code}`
      },
      { url: service.url, address: email },
    )
    expect(seen).toBe('401 passkey_failed')
  })

  it('are refused on a page of another origin, for sign-in and for registration', async () => {
    const email = await userWithPasskey()
    await open(otherPages)
    expect(await signIn(email)).toBe('401 passkey_failed')
    expect(await signIn()).toBe('401 passkey_failed')
    const registered = page.evaluate(
      async (given) => {
        await client.auth.register(given)
        return client.auth.passkeys.register().catch((error: { code: string }) => error.code)
      },
      { email: `user-${users++}@example.org`, password: usualPassword },
    )
    expect(await registered).toBe('passkey_failed')
  })

  it('are refused when the authenticator did not verify its user', async () => {
    const email = await userWithPasskey()
    await devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
    expect(await signIn(email)).toBe('NotAllowedError')
    // The page weakens the options of the service, which still requires user verification.
    const seen = await page.evaluate(
      async ({ url, address }) => {
        const get = navigator.credentials.get.bind(navigator.credentials)
        navigator.credentials.get = (options) => {
          const publicKey = { ...options?.publicKey, userVerification: 'discouraged' }
          return get({ publicKey } as CredentialRequestOptions)
        }
        const { auth } = new strandfast.ServiceClient({ url })
        return auth.passkeys.signIn(address).catch((error: { code: string }) => error.code)
      },
      { url: service.url, address: email },
    )
    expect(seen).toBe('passkey_failed')
    await devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })
    await open(pages)
    expect(await signIn(email)).toBe(email)
  })

  it('are refused for a copy with a lower counter', async () => {
    const email = await userWithPasskey()
    const [copy] = await credentials()
    if (copy === undefined) throw new Error('Expected a passkey')
    for (let count = 0; count < 3; count++) expect(await signIn(email)).toBe(email)
    await devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
    authenticatorId = await plugIn()
    await devtools.send('WebAuthn.addCredential', {
      authenticatorId,
      credential: { ...copy, rpId: 'localhost' },
    })
    expect(await signIn(email)).toBe('401 passkey_failed')
    await devtools.send('WebAuthn.clearCredentials', { authenticatorId })
    const ahead = { ...copy, rpId: 'localhost', signCount: 1_000 }
    await devtools.send('WebAuthn.addCredential', { authenticatorId, credential: ahead })
    expect(await signIn(email)).toBe(email)
  })
})
