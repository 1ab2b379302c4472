import type { Page } from 'playwright-core'
import { axeFindings } from './console-page.js'

/** Colours do not depend on the width, so two combinations cover all of them. */
const combinations = [
  [1440, 'light'],
  [360, 'dark'],
] as const

/** The violations of axe and the overflows of a screen: wide and light, narrow and dark. */
export async function faultsEverywhere(page: Page): Promise<string[]> {
  const faults: string[] = []
  for (const [width, colorScheme] of combinations) {
    await page.setViewportSize({ width, height: 800 })
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    const found = await axeFindings(page)
    const shown = await page.evaluate(() => document.documentElement.scrollWidth)
    if (shown !== width) found.push(`The page is ${shown} wide`)
    faults.push(...found.map((fault) => `${width} ${colorScheme}: ${fault}`))
  }
  return faults
}
