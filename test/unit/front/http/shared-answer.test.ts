import { expect, it } from 'vitest'
import { sharedAnswer } from '../../../../src/front/http/shared-answer.js'

/** An answer that is computed when the test says so, and the clock of its cache. */
function answer(keptMs: number) {
  const builds: { resolve(text: string): void; reject(error: Error): void }[] = []
  const clock = { ms: 5_000 }
  const compute = () => new Promise<string>((resolve, reject) => builds.push({ resolve, reject }))
  return { builds, clock, get: sharedAnswer(compute, { keptMs, clock: () => clock.ms }) }
}

// 200 concurrent requests for /metrics blocked the front for 438 ms: each computed them again.
it('is computed once for all waiting callers, however long it takes', async () => {
  const { builds, clock, get } = answer(1_000)
  const waiting = [get(), get()]
  clock.ms += 10_000
  waiting.push(get())
  expect(builds).toHaveLength(1)
  builds[0]?.resolve('first')
  expect(await Promise.all(waiting)).toEqual(['first', 'first', 'first'])
})

it('is cached for a second, and then computed again', async () => {
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

it('is computed again after a failure, which all waiting callers get', async () => {
  const { builds, get } = answer(Infinity)
  const waiting = [get(), get()]
  builds[0]?.reject(new Error('not now'))
  for (const call of waiting) await expect(call).rejects.toThrow('not now')
  const next = get()
  builds[1]?.resolve('second')
  expect(await next).toBe('second')
  expect(await get()).toBe('second')
})
