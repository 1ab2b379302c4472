import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { usualPassword } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { noBrowser } from '../support/http/browser.js'
import { authBase, registerIn } from '../support/auth/organisms.js'
import type { TestServer } from '../support/server/server.js'
import {
  byPassword,
  storedTokens,
  mailedLink,
  type OpenPage,
  openSignIn,
  part,
  says,
  type SignInWorld,
  signOut,
  startSignInWorld,
  warns,
  worldOrganism,
} from '../support/auth/sign-in-page.js'

let world: SignInWorld
let users = 0

/** A new e-mail address. */
const newEmail = () => `user-${users++}@example.org`

/** Runs a test in a new page, and checks that the page had no unreported error. */
async function inPage(opening: Promise<OpenPage>, use: (opened: OpenPage) => Promise<void>): Promise<void> {
  const opened = await opening
  try {
    await use(opened)
    expect(opened.errors).toEqual([])
  } finally {
    await opened.context.close()
  }
}

async function registered(page: Page): Promise<{ email: string; password: string }> {
  const account = { email: newEmail(), password: usualPassword }
  await byPassword(page, 'Register', account)
  await says(page, `Signed in as ${account.email}`)
  return account
}

/** Fills in the forms of the OpenID provider. */
async function consent(page: Page, subject: string): Promise<void> {
  await page.fill('input[name=login]', subject)
  await page.fill('input[name=password]', 'x')
  await page.click('button[type=submit]')
  await page.click('button[type=submit]')
}

/** Runs a test in a page of a service without mail, passkeys and providers. */
async function withPlainService(
  more: Record<string, string>,
  use: (opened: OpenPage & { plain: TestServer }) => Promise<void>,
): Promise<void> {
  const origins = [world.home, world.foreignHome].map((home) => new URL(home).origin)
  const started = await startAuthServer({ env: { SERVICE_CORS_ORIGINS: origins.join(), ...more } })
  // On the site of the page: pages of other sites get no token.
  const plain = { ...started, url: started.url.replace('127.0.0.1', 'localhost') }
  try {
    await inPage(openSignIn(world, { url: plain.url }), (opened) => use({ ...opened, plain }))
  } finally {
    await plain.stop()
  }
}

beforeAll(async () => {
  if (!noBrowser) world = await startSignInWorld()
})

afterAll(() => world?.stop())

describe.skipIf(noBrowser).each([
  { users: 'users outside organisms', space: undefined },
  { users: 'users of an organism', space: worldOrganism },
])('the sign-in page for $users', ({ space }) => {
  const open = () => openSignIn(world, { space })
  const me = (key: string) => checkedCall(world.service, `GET ${authBase(space)}/me`, { key })

  it('registers a user, signs in by password, and explains why a password is refused', () =>
    inPage(open(), async ({ page, address }) => {
      await byPassword(page, 'Register', { email: newEmail(), password: 'password1' })
      await warns(page, 'too easy to guess: Expected')
      const account = await registered(page)
      await signOut(page)
      await byPassword(page, 'Register', account)
      await warns(page, 'There is an account with this e-mail already')
      await byPassword(page, 'Sign in', { ...account, password: 'not the password' })
      await warns(page, 'The e-mail or the password is wrong.')
      expect(await storedTokens(page)).toEqual([])
      await byPassword(page, 'Sign in', account)
      await says(page, `Signed in as ${account.email}`)
      expect(await page.getByRole('alert').textContent()).toBe('')
      expect(page.url()).toBe(address)
    }))

  it('keeps the session after a reload, and ends it by signing out', () =>
    inPage(open(), async ({ page }) => {
      const { email } = await registered(page)
      await page.reload()
      await says(page, `Signed in as ${email}`)
      const [token = ''] = await storedTokens(page)
      expect((await me(token)).body.email).toBe(email)
      await signOut(page)
      expect((await me(token)).body.code).toBe('token_revoked')
      expect(await page.content()).not.toContain(email)
      await page.reload()
      await says(page, 'You are not signed in.')
      expect(await storedTokens(page)).toEqual([])
    }))

  it('signs in by an opened mail link only when its button is pressed', () =>
    inPage(open(), async ({ page, address }) => {
      const email = newEmail()
      await part(page, 'Magic link').getByLabel('E-mail').fill(email)
      await page.getByRole('button', { name: 'Send a link' }).click()
      await says(page, `A mail with a link is on its way to ${email}`)
      const link = await mailedLink(world, email)
      // A mail scanner opens the link before the user.
      for (let count = 0; count < 2; count++) {
        await page.goto(link.href)
        await says(page, 'You are not signed in.')
      }
      const token = link.searchParams.get('token') ?? ''
      expect(await page.getByLabel('Organism').inputValue()).toBe(space ?? '')
      expect(page.url()).not.toContain(token)
      // The link contains no service, so the page uses its origin.
      expect(await page.getByLabel('Address').inputValue()).toBe(new URL(world.home).origin)
      await page.getByLabel('Address').fill(world.base)
      await page.getByRole('button', { name: 'Connect' }).click()
      await page.waitForURL(address)
      await page.getByRole('button', { name: 'Sign in by link' }).click()
      await says(page, `Signed in as ${email}`)
      expect(await part(page, 'You').getByRole('definition').nth(1).textContent()).toBe('yes')
      await signOut(page)
      await part(page, 'Magic link').getByLabel('The link').fill(link.href)
      await page.getByRole('button', { name: 'Sign in by link' }).click()
      await warns(page, 'The link is wrong, has been used, or has expired.')
    }))

  it('signs in by a pasted mail link', () =>
    inPage(open(), async ({ page }) => {
      const email = newEmail()
      await part(page, 'Magic link').getByLabel('E-mail').fill(email)
      await page.getByRole('button', { name: 'Send a link' }).click()
      const link = await mailedLink(world, email)
      await part(page, 'Magic link').getByLabel('The link').fill(` ${link.href}\n`)
      await page.getByRole('button', { name: 'Sign in by link' }).click()
      await says(page, `Signed in as ${email}`)
    }))

  it('signs in by Google, and leaves no token in the address bar', () =>
    inPage(open(), async ({ page, context, address }) => {
      const email = newEmail()
      await world.provider.account(`g-${email}`, { email, email_verified: true })
      await page.getByRole('button', { name: 'Sign in with Google' }).click()
      await consent(page, `g-${email}`)
      await says(page, `Signed in as ${email}`)
      expect(page.url()).toBe(address)
      const callback = `${world.base}${authBase(space)}/oauth/google/callback`
      const [cookie] = await context.cookies(callback)
      expect(cookie).toMatchObject({ name: 'strandfast-oauth-google', httpOnly: true, sameSite: 'Lax' })
      await page.reload()
      await says(page, `Signed in as ${email}`)
    }))

  it('shows a message when the user returns from Google without having signed in', () =>
    inPage(open(), async ({ page, address }) => {
      await page.getByRole('button', { name: 'Sign in with Google' }).click()
      await page.click('a[href$="/abort"]')
      await warns(page, 'You did not let the other service sign you in.')
      await says(page, 'You are not signed in.')
      expect(page.url()).toBe(address)
    }))

  it('signs in by GitHub', () =>
    inPage(open(), async ({ page, address }) => {
      const email = newEmail()
      world.github.user = { id: 1_000 + users, emails: [{ email, primary: true, verified: true }] }
      await page.getByRole('button', { name: 'Sign in with GitHub' }).click()
      await says(page, `Signed in as ${email}`)
      expect(page.url()).toBe(address)
    }))

  it('ignores tokens in its address if this tab did not start the sign-in', async () => {
    const { token, refreshToken } = await registerIn(world.service, space, newEmail())
    await inPage(open(), async ({ page, address }) => {
      const results = { token, refresh_token: refreshToken, token_type: 'Bearer', expires_in: '900' }
      await page.goto('about:blank')
      await page.goto(`${address}#${new URLSearchParams(results)}`)
      await says(page, 'You are not signed in.')
      expect(page.url()).toBe(address)
      expect(await storedTokens(page)).toEqual([])
    })
  })

  it('adds a passkey, and signs in with it, with or without an e-mail', () =>
    inPage(open(), async ({ page }) => {
      const { email } = await registered(page)
      await page.getByRole('button', { name: 'Add a passkey' }).click()
      await says(page, 'The passkey was added. You can sign in with it.')
      expect(await part(page, 'Your passkeys').getByRole('listitem').count()).toBe(1)
      await page.getByRole('button', { name: 'Add a passkey' }).click()
      await warns(page, 'This device already has a passkey for your account.')
      for (const given of [email, '']) {
        await signOut(page)
        await part(page, 'Passkey').getByLabel('E-mail').fill(given)
        await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
        await says(page, `Signed in as ${email}`)
      }
      await part(page, 'Your passkeys').getByRole('button', { name: 'Delete' }).click()
      await says(page, 'The passkey was deleted.')
      await signOut(page)
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await warns(page, 'The service does not know this passkey')
    }))

  it('saves metadata, and reports metadata that is not a JSON object', () =>
    inPage(open(), async ({ page }) => {
      await registered(page)
      const field = page.getByLabel('Your metadata')
      await field.fill('{"name": "<b>Zoë</b>"')
      await page.getByRole('button', { name: 'Save' }).click()
      await warns(page, 'Expected a JSON object')
      await field.fill('{"name": "<b>Zoë</b>"}')
      await page.getByRole('button', { name: 'Save' }).click()
      await says(page, 'Saved.')
      await page.reload()
      await says(page, 'Signed in as')
      expect(JSON.parse(await field.inputValue())).toEqual({ name: '<b>Zoë</b>' })
    }))

  it('shows all sessions and ends another one', () =>
    inPage(open(), ({ page }) =>
      inPage(open(), async ({ page: other }) => {
        const account = await registered(page)
        await byPassword(other, 'Sign in', account)
        await says(other, `Signed in as ${account.email}`)
        await page.reload()
        const rows = part(page, 'Your sessions').locator('tbody tr')
        await rows.nth(1).waitFor()
        expect(await rows.count()).toBe(2)
        await page.getByRole('button', { name: 'End', exact: true }).click()
        await says(page, 'The session has ended.')
        expect(await rows.count()).toBe(1)
        await other.getByRole('button', { name: 'Save' }).click()
        await warns(other, 'Your session has ended. Sign in again.')
        await says(other, 'You are not signed in.')
        expect(await storedTokens(other)).toEqual([])
      }),
    ))
})

describe.skipIf(noBrowser)('the sign-in page', () => {
  it('keeps the sessions of an organism and of the service apart', () =>
    inPage(openSignIn(world), async ({ page }) => {
      const { email } = await registered(page)
      await page.getByLabel('Organism').fill(worldOrganism)
      await page.getByRole('button', { name: 'Connect' }).click()
      await says(page, 'You are not signed in.')
      await page.getByLabel('Organism').fill('unknown-organism')
      await page.getByRole('button', { name: 'Connect' }).click()
      await page.waitForURL(/organism=unknown-organism/)
      await byPassword(page, 'Sign in', { email, password: usualPassword })
      await warns(page, 'This service has no such organism.')
      await page.getByLabel('Organism').fill('')
      await page.getByRole('button', { name: 'Connect' }).click()
      await says(page, `Signed in as ${email}`)
    }))

  it('uses the token in the answer if the service sends no mail, and reports that there are no passkeys', () =>
    withPlainService({}, async ({ page, plain }) => {
      const email = newEmail()
      await part(page, 'Magic link').getByLabel('E-mail').fill(email)
      await page.getByRole('button', { name: 'Send a link' }).click()
      await says(page, 'This service sends no mail: the token is filled in.')
      await page.getByRole('button', { name: 'Sign in by link' }).click()
      await says(page, `Signed in as ${email}`)
      await page.getByRole('button', { name: 'Add a passkey' }).click()
      await warns(page, 'This service has no passkeys.')
      await signOut(page)
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await warns(page, 'This service has no passkeys.')
      await plain.halt()
      await byPassword(page, 'Sign in', { email, password: usualPassword })
      await warns(page, 'The service cannot be reached')
    }))

  it('gets no token on another site than a service that sends no mail', () =>
    withPlainService({}, ({ plain }) =>
      inPage(openSignIn(world, { home: world.foreignHome, url: plain.url }), async ({ page }) => {
        await part(page, 'Magic link').getByLabel('E-mail').fill(newEmail())
        await page.getByRole('button', { name: 'Send a link' }).click()
        await warns(page, 'not from a page of another site: the server runs in an open mode')
        expect(await page.getByLabel('The link').first().inputValue()).toBe('')
      }),
    ))

  it('requires users to confirm their e-mail first if the service requires it', () =>
    withPlainService({ SERVICE_AUTH_REQUIRE_EMAIL_VERIFY: 'true' }, async ({ page, plain, address }) => {
      const account = { email: newEmail(), password: usualPassword }
      await byPassword(page, 'Register', account)
      await says(page, `Confirm your address by the link mailed to ${account.email}`)
      await byPassword(page, 'Sign in', account)
      await warns(page, 'Confirm your e-mail address first')
      // First with the token in the answer, then as the mailed link would open the page.
      await page.locator('#verify-send').getByLabel('E-mail').fill(account.email)
      await page.getByRole('button', { name: 'Send the mail again' }).click()
      await says(page, 'This service sends no mail: the token is filled in.')
      const token = await page.locator('#verify-take').getByLabel('The link').inputValue()
      await page.goto(`${world.home}verify-email?${new URLSearchParams({ token })}`)
      await page.getByLabel('Address').fill(plain.url)
      await page.getByRole('button', { name: 'Connect' }).click()
      await page.waitForURL(address)
      await page.getByRole('button', { name: 'Confirm' }).click()
      await says(page, `The address ${account.email} is confirmed.`)
      await byPassword(page, 'Sign in', account)
      await says(page, `Signed in as ${account.email}`)
    }))

  it('signs in with Google, but not with a passkey, on another site than the service', () =>
    inPage(openSignIn(world, { home: world.foreignHome }), async ({ page, address }) => {
      const email = newEmail()
      await world.provider.account(`g-${email}`, { email, email_verified: true })
      await page.getByRole('button', { name: 'Sign in with Google' }).click()
      await consent(page, `g-${email}`)
      await says(page, `Signed in as ${email}`)
      expect(page.url()).toBe(address)
      await page.getByRole('button', { name: 'Add a passkey' }).click()
      await warns(page, 'Passkeys of this service cannot be used on this page.')
    }))

  it('does not open an invalid address of a service', async () => {
    const page = await world.browser.newPage()
    await page.goto(`${world.home}?${new URLSearchParams({ url: 'javascript:alert(1)' })}`)
    await warns(page, 'Expected the address of a service')
    expect(await page.getByRole('button', { name: 'Sign in with Google' }).isVisible()).toBe(false)
    await page.close()
  })

  it('can be used by keyboard: the focus moves to the shown part', () =>
    inPage(openSignIn(world), async ({ page }) => {
      const focused = () => page.evaluate(() => document.activeElement?.textContent)
      const form = part(page, 'Password')
      await form.getByLabel('E-mail').fill(newEmail())
      await form.getByLabel('Password', { exact: true }).fill(usualPassword)
      await page.keyboard.press('Tab')
      await page.keyboard.press('Tab')
      expect(await focused()).toBe('Register')
      await page.keyboard.press('Enter')
      await says(page, 'Signed in as')
      expect(await focused()).toBe('You')
      await page.getByRole('button', { name: 'Sign out', exact: true }).focus()
      await page.keyboard.press('Enter')
      await says(page, 'You are not signed in.')
      expect(await focused()).toBe('Password')
    }))
})
