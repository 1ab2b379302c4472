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

/** As `faultsEverywhere`, the colours of the other two combinations, and the layout of a small laptop. */
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
  await show(page, 1024, 'light')
  return [...faults, ...(await layoutFaults(page))]
}

/**
 * What does not fit at the current width: a page that scrolls sideways, an element that is wider than its
 * container, cells of a row that overlap, and a bar or tabs of several lines.
 */
export async function layoutFaults(page: Page): Promise<string[]> {
  const found = await page.evaluate(() => {
    const name = (one: Element): string =>
      `${one.tagName.toLowerCase()}.${one.className} “${one.textContent.slice(0, 40)}”`
    const all = (selector: string, within: ParentNode = document): Element[] =>
      [...within.querySelectorAll(selector)].filter((one) => one.checkVisibility())
    const { scrollWidth, clientWidth } = document.documentElement
    const faults = scrollWidth > clientWidth ? [`The page is ${scrollWidth} wide`] : []
    for (const one of all('body *')) {
      const isShown = getComputedStyle(one).overflowX === 'visible' && one.clientWidth > 0
      if (isShown && one.scrollWidth > one.clientWidth + 1)
        faults.push(`${name(one)} is ${one.scrollWidth} wide in ${one.clientWidth}`)
    }
    for (const row of all('[role=row], .live-rows li')) {
      const boxes = [...row.children].map((one) => ({ one, box: one.getBoundingClientRect() }))
      for (const [at, { one, box }] of boxes.entries()) {
        const next = boxes[at + 1]
        const isBeside = next !== undefined && next.box.top < box.bottom && next.box.bottom > box.top
        // A column of buttons stays in view above the others.
        const isAbove = next?.one.className === 'action'
        if (isBeside && !isAbove && next.box.left < box.right - 1) faults.push(`${name(one)} overlaps`)
      }
    }
    for (const line of all('.bar nav, .tabs')) {
      const tops = new Set(all('a', line).map((one) => Math.round(one.getBoundingClientRect().top)))
      if (tops.size > 1 && clientWidth >= 1_024) faults.push(`${name(line)} has ${tops.size} lines`)
    }
    const [bar] = all('.bar')
    if (bar !== undefined && clientWidth >= 1_024 && bar.clientHeight > 60)
      faults.push(`The bar is ${bar.clientHeight} high`)
    return faults
  })
  const { width } = page.viewportSize() ?? {}
  return found.map((fault) => `${width}: ${fault}`)
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
    faults.push(...found.map((fault) => `${width} ${colorScheme}: ${fault}`), ...(await layoutFaults(page)))
  }
  return faults
}
