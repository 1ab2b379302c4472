import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const CHROMIUM = '/usr/bin/chromium'

/** Whether browser tests are left out: where there is no browser, but never where the whole suite is promised. */
export const noBrowser = !existsSync(CHROMIUM) && process.env['CI'] !== 'true'

// Left out, but never in silence.
if (noBrowser) console.warn(`Skipped: no browser at ${CHROMIUM}`)

/** Starts a browser without a window, with more `switches` of its command line. */
export function launchBrowser(switches: readonly string[] = []): Promise<Browser> {
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', ...switches]
  return chromium.launch({ executablePath: CHROMIUM, args })
}
