/**
 * Takes the screenshots of docs/CONSOLE.md on a server with public data: `npm run screenshots`. Needs
 * Chromium.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { startServer } from '../bench/child.mjs'
import { dataSets } from './demo/data-sets.mjs'
import { upload } from './demo/upload.mjs'

const pictures = fileURLToPath(new URL('../docs/console/', import.meta.url))
const program = fileURLToPath(new URL('../dist/program/strandfast.js', import.meta.url))
/** Shown as dots, and only valid for this server. */
const key = 'root-key-of-the-server-in-the-pictures'
const AGENT = 'earthquakes.us'
const NAMES = ['airports of the United States', 'earthquakes of one week', 'weather of two stations by day']

const directory = mkdtempSync(join(tmpdir(), 'strandfast-pictures-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const server = await startServer([program, 'serve'], {
  SERVICE_DATA_DIR: join(directory, 'data'),
  SERVICE_PORT: '0',
  SERVICE_ROOT_API_KEY: key,
  SERVICE_LOG_LEVEL: 'warn',
})
const browser = await chromium.launch({
  executablePath: ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync),
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
})
try {
  await upload({ ...server, key, gzip: false }, rows(), () => {})
  mkdirSync(pictures, { recursive: true })
  await takeDesktop()
  await takePhone()
} finally {
  await browser.close()
  await server.stop()
}

function* rows() {
  for (const { name, rows: all } of dataSets) if (NAMES.includes(name)) yield* all()
}

/** Screenshots of a desktop. */
async function takeDesktop() {
  const page = await openPage({ viewport: { width: 1200, height: 760 }, colorScheme: 'light' })
  await page.getByRole('link', { name: 'Agents', exact: true }).click()
  await page.getByRole('row').nth(8).waitFor()
  await take(page, 'agents')
  await page.getByLabel('Name contains').fill(AGENT)
  await page.getByRole('link', { name: AGENT, exact: true }).click()
  await page.getByRole('row').nth(8).waitFor()
  await take(page, 'records')
  await page.goto(`${server.url}/console#/agents/${AGENT}/proof`)
  await page.getByLabel('Public key that you trust').fill(await publicKey())
  await page.getByRole('button', { name: 'Verify', exact: true }).click()
  await page.getByRole('status').filter({ hasText: 'Verified' }).waitFor()
  await take(page, 'proof-of-a-strand')
  await page.goto(`${server.url}/console#/agents/${AGENT}/7`)
  await page.getByRole('button', { name: 'Prove' }).click()
  await page.getByRole('status').filter({ hasText: 'Verified' }).waitFor()
  await take(page, 'proof-of-a-record')
  await page.goto(`${server.url}/docs#postAgentRecords`)
  await page.locator('#postAgentRecords').waitFor()
  await take(page, 'api')
}

/** A screenshot of a phone. */
async function takePhone() {
  const page = await openPage({ viewport: { width: 390, height: 760 }, colorScheme: 'dark' })
  await page.goto(`${server.url}/console#/agents/${AGENT}`)
  await page.getByRole('row').nth(8).waitFor()
  await take(page, 'phone')
}

async function publicKey() {
  const headers = { authorization: `Bearer ${key}` }
  const answer = await fetch(`${server.url}/v1/agents/${AGENT}/status`, { headers })
  return (await answer.json()).public_key
}

/** Opens a page and signs in. */
async function openPage(settings) {
  const context = await browser.newContext({ ...settings, reducedMotion: 'reduce' })
  const page = await context.newPage()
  await page.goto(server.url)
  await page.getByLabel('Root key or API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  return page
}

async function take(page, name) {
  await page
    .getByText(/^Loading /)
    .first()
    .waitFor({ state: 'detached' })
  // No focus ring and no pointer over a row.
  await page.mouse.move(0, 0)
  await page.evaluate(async () => {
    document.activeElement?.blur()
    await Promise.all(document.getAnimations().map(({ finished }) => finished))
  })
  await page.screenshot({ path: join(pictures, `${name}.png`) })
  process.stdout.write(`docs/console/${name}.png\n`)
}
