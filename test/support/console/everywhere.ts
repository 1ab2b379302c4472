import type { Page } from 'playwright-core'
import { axeFindings } from './console-page.js'

/** What axe finds on a screen and what does not fit, wide and narrow, light and dark; nothing where all is well. */
export async function faultsEverywhere(page: Page): Promise<string[]> {
  const faults: string[] = []
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 800 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      const found = await axeFindings(page)
      const shown = await page.evaluate(() => document.documentElement.scrollWidth)
      if (shown !== width) found.push(`The page is ${shown} wide`)
      faults.push(...found.map((fault) => `${width} ${colorScheme}: ${fault}`))
    }
  }
  return faults
}
