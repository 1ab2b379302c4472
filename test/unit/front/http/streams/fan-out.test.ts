import { expect, it } from 'vitest'
import { FanOut } from '../../../../../src/front/http/streams/fan-out.js'
import { limits } from '../../../../../src/base/limits/limits.js'

/** A task that takes a whole slice of the front thread. */
function takeLong(): void {
  const until = performance.now() + limits.streamSliceMs
  while (performance.now() < until);
}

/** Runs three rounds that are added in one turn. @returns how many were started in each turn */
async function turnsOf(fanOut: FanOut): Promise<number[]> {
  const started: number[] = []
  for (let round = 0; round < 3; round++) {
    fanOut.each([round], () => {
      started.push(round)
      takeLong()
    })
  }
  const turns = [started.length]
  while (started.length < 3) {
    const before = started.length
    await new Promise((resolve) => setImmediate(resolve))
    turns.push(started.length - before)
  }
  return turns
}

it('runs a slice immediately by default', async () => {
  const [first] = await turnsOf(new FanOut())
  expect(first).toBeGreaterThan(0)
})

it('lets rounds of one turn share the slices of later turns with "later"', async () => {
  const [first, ...later] = await turnsOf(new FanOut('later'))
  expect(first).toBe(0)
  expect(later.filter((count) => count > 0)).toEqual([1, 1, 1])
})
