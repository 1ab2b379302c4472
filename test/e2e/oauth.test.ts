import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAuthServer } from '../support/auth-server.js'
import { launchBrowser, noBrowser } from '../support/browser.js'
import { freePort } from '../support/free-port.js'
import { type OidcProcess, startOidcProcess } from '../support/oidc.js'
import { type StaticServer, startStaticServer } from '../support/static-server.js'

/** An application of one page: a button that leads to the provider, and what came back from it. */
const PAGE = `<!doctype html>
<button>Sign in</button><p role="status"></p>
<script type="module">
import { ServiceClient } from '/dist/src/client/index.js'
const url = new URLSearchParams(location.search).get('service')
const { auth } = new ServiceClient({ url })
const show = (text) => (document.querySelector('[role=status]').textContent = text)
document.querySelector('button').onclick = () =>
  location.assign(auth.oauth.authorizeUrl('google', { redirectUri: location.href, mode: 'fragment' }))
try {
  if (auth.oauth.takeFromFragment()) show((await auth.me()).email)
} catch (error) { show(error.code) }
</script>`

describe.skipIf(noBrowser)('a sign-in by a provider in a browser', () => {
  let app: StaticServer
  let provider: OidcProcess
  let service: Awaited<ReturnType<typeof startAuthServer>>
  let browser: Browser
  /** Of another site than the provider, as in life: the browser comes back to it from elsewhere. */
  let base: string

  beforeAll(async () => {
    app = await startStaticServer(PAGE)
    const [port, providerPort] = [await freePort(), await freePort()]
    base = `http://localhost:${port}`
    const client = { clientId: 'strandfast', clientSecret: 'secret' }
    provider = await startOidcProcess({
      ...client,
      port: providerPort,
      authMethod: 'client_secret_post',
      redirectUris: [`${base}/v1/auth/oauth/google/callback`],
    })
    await provider.account('g-ada', { email: 'ada@example.org', email_verified: true })
    service = await startAuthServer({
      env: {
        SERVICE_PORT: String(port),
        SERVICE_CORS_ORIGINS: app.origin,
        SERVICE_OAUTH_GOOGLE_CLIENT_ID: client.clientId,
        SERVICE_OAUTH_GOOGLE_CLIENT_SECRET: client.clientSecret,
        SERVICE_OAUTH_GOOGLE_ISSUER_URL: provider.issuerUrl,
        SERVICE_OAUTH_REDIRECT_BASE_URL: base,
        SERVICE_OAUTH_ALLOWED_REDIRECT_URIS: app.origin,
      },
    })
    browser = await launchBrowser()
  })

  afterAll(async () => {
    await browser?.close()
    await service?.stop()
    await provider?.stop()
    app?.stop()
  })

  it('leads through the provider’s pages back to the application, and leaves no token in the address bar', async () => {
    const page = await browser.newPage()
    const home = `${app.origin}/?service=${encodeURIComponent(base)}`
    await page.goto(home)
    await page.click('button')
    await page.fill('input[name=login]', 'g-ada')
    await page.fill('input[name=password]', 'x')
    await page.click('button[type=submit]')
    await page.click('button[type=submit]')
    const status = page.locator('[role=status]', { hasText: /./ })
    expect(await status.textContent()).toBe('ada@example.org')
    expect(page.url()).toBe(home)
    const [cookie] = await page.context().cookies(`${base}/v1/auth/oauth/google/callback`)
    expect(cookie).toMatchObject({ name: 'strandfast-oauth-google', httpOnly: true, sameSite: 'Lax' })
    await page.close()
  })

  it('tells the application when the user goes back', async () => {
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(`${app.origin}/?service=${encodeURIComponent(base)}`)
    await page.click('button')
    await page.click('a[href$="/abort"]')
    const status = page.locator('[role=status]', { hasText: /./ })
    expect(await status.textContent()).toBe('access_denied')
    await context.close()
  })
})
