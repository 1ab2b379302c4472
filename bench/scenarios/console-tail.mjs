import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { chromium } from 'playwright-core'
import { recordBody } from '../records.mjs'
import { call, createAgents, rootKey, startProduct } from '../server.mjs'
import { median, rounded } from '../statistics.mjs'

const CHROMIUM = '/usr/bin/chromium'
const switches = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking']
const NAME = 'longest frame of the live tail at 2,000 records a second'
const PER_SECOND = 2_000
const TICK_MS = 50
const FRAME_TARGET_MS = 200
const [SHOWN, OTHER] = ['tail-shown', 'tail-other']

/**
 * The live tail of the console in a headless browser while 2,000 records a second are written: to the agent
 * that is shown, and alternately to another agent, which shows what the machine and the browser alone do to
 * frames.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<(import('../report.mjs').Measured | import('../report.mjs').NotMeasured)[]>}
 */
export async function consoleTail(bench) {
  if (!existsSync(CHROMIUM)) return [{ name: NAME, notMeasured: `no browser at ${CHROMIUM}` }]
  const { plan, directory, report } = bench
  const product = await startProduct(join(directory, 'console-tail'))
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: switches })
  try {
    await createAgents(product.url, [SHOWN, OTHER])
    report('live tail of the console')
    const page = await openTail(browser, product.url)
    await round(page, product.url, { agent: SHOWN, seconds: plan.warmUpSeconds })
    const rounds = []
    for (let number = 1; number <= plan.rounds; number++) {
      const shown = await round(page, product.url, { agent: SHOWN, seconds: plan.seconds })
      const other = await round(page, product.url, { agent: OTHER, seconds: plan.seconds })
      report(
        `  round ${number}: ${Math.round(shown.longestMs)} ms, and ${Math.round(other.longestMs)} ms without`,
      )
      rounds.push({ shown, other })
    }
    const of = (part, name) => rounds.map((one) => one[part][name])
    const ratio = median(rounds.map(({ shown, other }) => shown.longestMs / other.longestMs))
    return [
      {
        name: NAME,
        value: Math.max(...of('shown', 'longestMs')),
        unit: 'ms',
        target: { below: FRAME_TARGET_MS },
        also: {
          p99_ms: rounded(median(of('shown', 'p99Ms'))),
          idle_longest_ms: rounded(Math.max(...of('other', 'longestMs'))),
          idle_p99_ms: rounded(median(of('other', 'p99Ms'))),
          longest_by_idle: rounded(ratio),
          behind_records: Math.max(...of('shown', 'behind')),
        },
      },
    ]
  } finally {
    await browser.close()
    await product.stop()
  }
}

async function openTail(browser, url) {
  const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage()
  await page.goto(`${url}/console#/agents/${SHOWN}/live`)
  await page.getByLabel('Root key or API key').fill(rootKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor()
  return page
}

/** Writes for some seconds while the page measures the time between frames. */
async function round(page, url, { agent, seconds }) {
  await page.evaluate(() => {
    const frames = []
    globalThis.frames_ = frames
    let before = performance.now()
    const next = (now) => {
      frames.push(now - before)
      before = now
      if (globalThis.frames_ === frames) requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
  })
  const head = await write(url, agent, seconds)
  const frames = await page.evaluate(() => {
    const taken = globalThis.frames_
    globalThis.frames_ = undefined
    return taken.sort((one, other) => one - other)
  })
  const newest = await page.evaluate(() => document.querySelector('.live-rows a')?.textContent ?? '0')
  const behind = agent === SHOWN ? head - Number(newest.replaceAll(/\D/g, '')) : 0
  return { longestMs: frames.at(-1) ?? 0, p99Ms: frames[Math.floor(frames.length * 0.99)] ?? 0, behind }
}

/** @returns {Promise<number>} seq of the agent's last record */
async function write(url, agent, seconds) {
  const fromMs = performance.now()
  const count = (PER_SECOND * TICK_MS) / 1_000
  const ticks = (seconds * 1_000) / TICK_MS
  for (let tick = 0; tick < ticks; tick++) {
    await pause(Math.max(0, fromMs + tick * TICK_MS - performance.now()))
    const lines = Array.from({ length: count }, (_none, line) =>
      JSON.stringify(recordBody(tick * count + line)),
    )
    await call(`${url}/v1/ingest/${agent}`, { ndjson: lines.join('\n') })
  }
  return (await call(`${url}/v1/agents/${agent}/head`)).seq
}
