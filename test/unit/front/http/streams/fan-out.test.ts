import { expect, it } from 'vitest'
import { FanOut } from '../../../../../src/front/http/streams/fan-out.js'
import { limits } from '../../../../../src/base/limits/limits.js'

/** A task that takes as long as a slice of the front thread. */
function takeLong(): void {
  const until = performance.now() + limits.streamSliceMs
  while (performance.now() < until);
}

/** Carries out three rounds that come in one turn. @returns how many were begun in each turn */
async function turnsOf(fanOut: FanOut): Promise<number[]> {
  const begun: number[] = []
  for (let round = 0; round < 3; round++) {
    fanOut.each([round], () => {
      begun.push(round)
      takeLong()
    })
  }
  const turns = [begun.length]
  while (begun.length < 3) {
    const before = begun.length
    await new Promise((resolve) => setImmediate(resolve))
    turns.push(begun.length - before)
  }
  return turns
}

it('takes a slice at once, where rounds are rare', async () => {
  const [first] = await turnsOf(new FanOut())
  expect(first).toBeGreaterThan(0)
})

it('has rounds of one turn share the slices of later ones, where many come together', async () => {
  const [first, ...later] = await turnsOf(new FanOut('later'))
  expect(first).toBe(0)
  expect(later.filter((count) => count > 0)).toEqual([1, 1, 1])
})
