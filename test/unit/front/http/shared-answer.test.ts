import { expect, it } from 'vitest'
import { sharedAnswer } from '../../../../src/front/http/shared-answer.js'

/** An answer that is made when the test says so, and the clock that it is kept by. */
function answer(keptMs: number) {
  const builds: { resolve(text: string): void; reject(error: Error): void }[] = []
  const clock = { ms: 5_000 }
  const make = () => new Promise<string>((resolve, reject) => builds.push({ resolve, reject }))
  return { builds, clock, get: sharedAnswer(make, { keptMs, clock: () => clock.ms }) }
}

// 200 requests for /metrics at once held the front for 438 ms: each had them made again.
it('is made once for all that wait for it, however long that takes', async () => {
  const { builds, clock, get } = answer(1_000)
  const waiting = [get(), get()]
  clock.ms += 10_000
  waiting.push(get())
  expect(builds).toHaveLength(1)
  builds[0]?.resolve('first')
  expect(await Promise.all(waiting)).toEqual(['first', 'first', 'first'])
})

it('is kept for a second, and then made again', async () => {
  const { builds, clock, get } = answer(1_000)
  const first = get()
  builds[0]?.resolve('first')
  await first
  clock.ms += 999
  expect(await get()).toBe('first')
  clock.ms += 1
  const second = get()
  builds[1]?.resolve('second')
  expect(await second).toBe('second')
  expect(builds).toHaveLength(2)
})

it('is made again after a failure, which all that waited get', async () => {
  const { builds, get } = answer(Infinity)
  const waiting = [get(), get()]
  builds[0]?.reject(new Error('not now'))
  for (const one of waiting) await expect(one).rejects.toThrow('not now')
  const next = get()
  builds[1]?.resolve('second')
  expect(await next).toBe('second')
  expect(await get()).toBe('second')
})
