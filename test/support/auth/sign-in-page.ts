import type { Browser, BrowserContext, Page } from 'playwright-core'
import { startAuthServer } from '../server/auth-server.js'
import { sharedBrowser } from '../http/browser.js'
import { eventually } from '../eventually.js'
import { freePort } from '../server/free-port.js'
import { type GithubServer, startGithubServer } from './github-server.js'
import { type OidcProcess, startOidcProcess } from './oidc.js'
import { authBase, newOrganism, type Space } from './organisms.js'
import type { TestServer } from '../server/server.js'
import { linkIn, type SmtpProcess, startSmtpProcess } from '../mail/smtp.js'
import { startStaticServer } from '../server/static-server.js'

/** The environment of the example page: service, both providers, mail server, browser. */
export interface SignInWorld {
  /** The address of the page on localhost, where browsers allow passkeys without TLS. */
  home: string
  /** The same page on a different site than the service. */
  foreignHome: string
  service: TestServer
  /** The address of the service with the host name for cookies. */
  base: string
  provider: OidcProcess
  github: GithubServer
  smtp: SmtpProcess
  browser: Browser
  stop(): Promise<void>
}

/** The organism with users. */
export const worldOrganism = 'guild'

const FOLDER = '/examples/sign-in/'

/** Starts the environment, with all ways to sign in configured. */
export async function startSignInWorld(): Promise<SignInWorld> {
  const [port, providerPort, smtpPort] = [await freePort(), await freePort(), await freePort()]
  const base = `http://localhost:${port}`
  const pages = await startStaticServer()
  const origin = pages.origin.replace('127.0.0.1', 'localhost')
  const [home, foreignHome] = [origin + FOLDER, pages.origin + FOLDER]
  const client = { clientId: 'strandfast', clientSecret: 'secret' }
  const provider = await startOidcProcess({
    ...client,
    port: providerPort,
    authMethod: 'client_secret_post',
    redirectUris: [undefined, worldOrganism].map(
      (space) => `${base}${authBase(space)}/oauth/google/callback`,
    ),
  })
  const github = await startGithubServer()
  const smtp = await startSmtpProcess(smtpPort)
  const service = await startAuthServer({
    env: {
      SERVICE_PORT: String(port),
      SERVICE_CORS_ORIGINS: `${origin},${pages.origin}`,
      SERVICE_WEBAUTHN_RP_ID: 'localhost',
      SERVICE_WEBAUTHN_ORIGIN: origin,
      SERVICE_OAUTH_GOOGLE_CLIENT_ID: client.clientId,
      SERVICE_OAUTH_GOOGLE_CLIENT_SECRET: client.clientSecret,
      SERVICE_OAUTH_GOOGLE_ISSUER_URL: provider.issuerUrl,
      SERVICE_OAUTH_GITHUB_CLIENT_ID: github.clientId,
      SERVICE_OAUTH_GITHUB_CLIENT_SECRET: github.clientSecret,
      SERVICE_OAUTH_GITHUB_BASE_URL: github.url,
      SERVICE_OAUTH_REDIRECT_BASE_URL: base,
      SERVICE_OAUTH_ALLOWED_REDIRECT_URIS: `${home},${foreignHome}`,
      SERVICE_MAIL_ENABLED: 'true',
      SERVICE_MAIL_SMTP_URL: smtp.url,
      SERVICE_MAIL_FROM: 'Strandfast <no-reply@service.example>',
      SERVICE_MAIL_LINK_BASE_URL: home,
    },
  })
  await newOrganism(service, worldOrganism)
  const browser = await sharedBrowser()
  const stop = async () => {
    await service.stop()
    await smtp.stop()
    await github.stop()
    await provider.stop()
    pages.stop()
  }
  return { home, foreignHome, service, base, provider, github, smtp, browser, stop }
}

/** The page in a new browser profile. */
export interface OpenPage {
  page: Page
  context: BrowserContext
  /** The address of the page, with the service and the organism. */
  address: string
  /** Uncaught errors of the page. */
  errors: string[]
}

/** The page, service and namespace to use; by default those of the environment and the root namespace. */
interface Opening {
  home?: string
  url?: string
  space?: Space
}

/** Opens the page with an authenticator that verifies its user and has no passkey yet. */
export async function openSignIn(world: SignInWorld, opening: Opening = {}): Promise<OpenPage> {
  const { home = world.home, url = world.base, space } = opening
  const query = new URLSearchParams({ url, ...(space !== undefined && { organism: space }) })
  const address = `${home}?${query}`
  const context = await world.browser.newContext()
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  await plugIn(context, page)
  await page.goto(address)
  await says(page, 'You are not signed in.')
  return { page, context, address, errors: complaints }
}

async function plugIn(context: BrowserContext, page: Page): Promise<void> {
  const devtools = await context.newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const options = {
    protocol: 'ctap2',
    transport: 'internal',
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  } as const
  await devtools.send('WebAuthn.addVirtualAuthenticator', { options })
}

/** Waits until the page has this status. */
export function says(page: Page, text: string): Promise<void> {
  return page.locator('[role=status]', { hasText: text }).waitFor()
}

/** Waits until the page shows this error. */
export function warns(page: Page, text: string): Promise<void> {
  return page.locator('[role=alert]', { hasText: text }).waitFor()
}

/** A section of the page, by its heading. */
export const part = (page: Page, name: string) => page.getByRole('region', { name, exact: true })

/** Signs in or registers with e-mail and password. */
export async function byPassword(
  page: Page,
  button: 'Sign in' | 'Register',
  { email, password }: { email: string; password: string },
): Promise<void> {
  const form = part(page, 'Password')
  await form.getByLabel('E-mail').fill(email)
  await form.getByLabel('Password', { exact: true }).fill(password)
  await form.getByRole('button', { name: button }).click()
}

/** Signs out, and waits until the page shows it. */
export async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await says(page, 'You are not signed in.')
}

/** The magic link in the first mail to an address. */
export async function mailedLink({ smtp }: SignInWorld, email: string): Promise<URL> {
  const find = () => smtp.mails.find(({ to, subject }) => to.includes(email) && subject.startsWith('Sign in'))
  await eventually(() => find() !== undefined)
  const mail = find()
  if (mail === undefined) throw new Error('Expected a mail')
  return linkIn(mail).url
}

/** All tokens that the page has stored. */
export function storedTokens(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    Object.values({ ...sessionStorage, ...localStorage }).flatMap((text: string) => {
      const stored: unknown = text.startsWith('{') ? JSON.parse(text) : undefined
      return typeof stored === 'object' && stored !== null && 'token' in stored ? [String(stored.token)] : []
    }),
  )
}
