import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

/** Debian's Chromium; its headless shell renders the same with two thirds of the processor time. */
const headlessShell = '/usr/bin/chromium-headless-shell'
const chromiumPath = existsSync(headlessShell) ? headlessShell : '/usr/bin/chromium'

/**
 * Whether browser tests are skipped: if there is no browser, but never in CI, where the whole suite has to
 * run.
 */
export const noBrowser = !existsSync(chromiumPath) && process.env['CI'] !== 'true'

// Skipped, but not silently.
if (noBrowser) console.warn(`Skipped: no browser at ${chromiumPath}`)

let started: Promise<Browser> | undefined

/**
 * A headless browser, shared by all files of a test process and closed with it. `console.example` resolves to
 * this machine.
 */
export function sharedBrowser(): Promise<Browser> {
  const mapped = '--host-resolver-rules=MAP console.example 127.0.0.1'
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', mapped]
  // Fewer processes save a tenth of its processor time.
  args.push('--in-process-gpu', '--no-zygote')
  // All pages of a context share one process.
  args.push('--renderer-process-limit=1')
  started ??= chromium.launch({ executablePath: chromiumPath, args })
  return started
}
