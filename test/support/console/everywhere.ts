import type { Page } from 'playwright-core'
import { axeFindings } from './console-page.js'

/** Colours hardly depend on the width, so two combinations cover most of them. */
const combinations = [
  [1440, 'light'],
  [360, 'dark'],
] as const

/** The violations of axe and the overflows of a screen: wide and light, narrow and dark. */
export async function faultsEverywhere(page: Page): Promise<string[]> {
  return faultsOf(page, combinations)
}

/** As `faultsEverywhere`, and the colours of the other two combinations. */
export async function faultsInAllThemes(page: Page): Promise<string[]> {
  const faults = await faultsOf(page, combinations)
  for (const [width, colorScheme] of [
    [1440, 'dark'],
    [360, 'light'],
  ] as const) {
    await show(page, width, colorScheme)
    const found = await axeFindings(page, 'colours')
    faults.push(...found.map((fault) => `${width} ${colorScheme}: ${fault}`))
  }
  return faults
}

async function show(page: Page, width: number, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.setViewportSize({ width, height: 800 })
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
}

async function faultsOf(
  page: Page,
  wanted: readonly (readonly [width: number, colorScheme: 'light' | 'dark'])[],
): Promise<string[]> {
  const faults: string[] = []
  for (const [width, colorScheme] of wanted) {
    await show(page, width, colorScheme)
    const found = await axeFindings(page)
    const shown = await page.evaluate(() => document.documentElement.scrollWidth)
    if (shown !== width) found.push(`The page is ${shown} wide`)
    faults.push(...found.map((fault) => `${width} ${colorScheme}: ${fault}`))
  }
  return faults
}
