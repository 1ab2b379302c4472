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

/** Everything that the example page meets: service, both providers, mail server, browser. */
export interface SignInWorld {
  /** Where the page is: localhost, the one name by which browsers let pages use passkeys without TLS. */
  home: string
  /** The same page on another site than the service. */
  foreignHome: string
  service: TestServer
  /** The address of the service by the name that cookies are kept for. */
  base: string
  provider: OidcProcess
  github: GithubServer
  smtp: SmtpProcess
  browser: Browser
  stop(): Promise<void>
}

/** The organism of the world that has users. */
export const worldOrganism = 'guild'

const FOLDER = '/examples/sign-in/'

/** Starts all of it, with every way to sign in set up. */
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

/** The page in a browser profile of its own. */
export interface OpenPage {
  page: Page
  context: BrowserContext
  /** The page's address, with the service and the organism. */
  address: string
  /** What went wrong in the page's script and was caught by nobody. */
  complaints: string[]
}

/** Which page to open, for which users of which service; that of the world and its users outside organisms unless given. */
interface Opening {
  home?: string
  url?: string
  space?: Space
}

/** Opens the page with an authenticator that verifies its user and knows no passkey. */
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
  await says(page, 'Nobody is signed in.')
  return { page, context, address, complaints }
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

/** Waits until the page says so. */
export function says(page: Page, text: string): Promise<void> {
  return page.locator('[role=status]', { hasText: text }).waitFor()
}

/** Waits until the page tells of a problem in these words. */
export function warns(page: Page, text: string): Promise<void> {
  return page.locator('[role=alert]', { hasText: text }).waitFor()
}

/** A part of the page, by its heading. */
export const part = (page: Page, name: string) => page.getByRole('region', { name, exact: true })

/** Signs in or registers by e-mail and password. */
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

/** Signs out and waits until that is so. */
export async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await says(page, 'Nobody is signed in.')
}

/** The address in the mail that signs in, sent to an address so far unused. */
export async function mailedLink({ smtp }: SignInWorld, email: string): Promise<URL> {
  const find = () => smtp.mails.find(({ to, subject }) => to.includes(email) && subject.startsWith('Sign in'))
  await eventually(() => find() !== undefined)
  const mail = find()
  if (mail === undefined) throw new Error('Expected a mail')
  return linkIn(mail).url
}

/** Tokens that the tab keeps, whatever for. */
export function keptTokens(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    Object.values({ ...sessionStorage, ...localStorage }).flatMap((text: string) => {
      const kept: unknown = text.startsWith('{') ? JSON.parse(text) : undefined
      return typeof kept === 'object' && kept !== null && 'token' in kept ? [String(kept.token)] : []
    }),
  )
}
