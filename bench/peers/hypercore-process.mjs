/** Appends to a hypercore in a separate process, one append after the other. */
import Hypercore from 'hypercore'
import { recordBody } from '../records.mjs'
import { percentile } from '../statistics.mjs'

const BODIES = 1_000

process.once('message', async ({ directory, blocks, seconds }) => {
  const core = new Hypercore(directory)
  await core.ready()
  const bodies = Array.from({ length: BODIES }, (_, number) =>
    Buffer.from(JSON.stringify(recordBody(number))),
  )
  const before = core.length
  const times = []
  const startMs = performance.now()
  let atMs = startMs
  while (atMs - startMs < seconds * 1_000) {
    const from = (times.length * blocks) % BODIES
    await core.append(bodies.slice(from, from + blocks))
    const nowMs = performance.now()
    times.push(nowMs - atMs)
    atMs = nowMs
  }
  const appended = core.length - before
  if (appended !== times.length * blocks)
    throw new Error(`${times.length * blocks} blocks were appended and ${appended} found`)
  await core.close()
  const value = (appended / (atMs - startMs)) * 1_000
  process.send({ value, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) }, () =>
    process.disconnect(),
  )
})
