import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

/** Debian's Chromium; its headless shell draws the same with two thirds of the processor time. */
const headlessShell = '/usr/bin/chromium-headless-shell'
const chromiumPath = existsSync(headlessShell) ? headlessShell : '/usr/bin/chromium'

/** Whether browser tests are left out: where there is no browser, but never where the whole suite is promised. */
export const noBrowser = !existsSync(chromiumPath) && process.env['CI'] !== 'true'

// Left out, but never in silence.
if (noBrowser) console.warn(`Skipped: no browser at ${chromiumPath}`)

/** Starts a browser without a window, with more `switches` of its command line. */
export function launchBrowser(switches: readonly string[] = []): Promise<Browser> {
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', ...switches]
  return chromium.launch({ executablePath: chromiumPath, args })
}
