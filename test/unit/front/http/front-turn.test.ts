import { describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { FrontTurn } from '../../../../src/front/http/front-turn.js'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A front on which each task takes as long as the test says. */
function front() {
  const clock = { ms: 1_000 }
  const turn = new FrontTurn(() => clock.ms)
  const completed: string[] = []
  const work = (name: string, ms: number) => () => {
    clock.ms += ms
    completed.push(name)
  }
  const request = (name: string, ms: number) =>
    turn.takesRequests ? work(name, ms)() : turn.deferRequest(work(name, ms))
  const body = (holder: string, name: string, ms: number) =>
    turn.takesBodies ? work(name, ms)() : turn.deferBody(holder, work(name, ms))
  return { completed, request, body }
}

// 200 bodies of 64 KB whose last bytes arrived together blocked the front for 0.8 s.
describe('the time budget of a turn', () => {
  it('is used for arriving requests until it is spent; the others are handled in later turns', async () => {
    const { completed, request } = front()
    const half = limits.requestTurnMs / 2
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) request(name, half)
    expect(completed).toEqual(['a', 'b'])
    await nextTurn()
    expect(completed).toEqual(['a', 'b', 'c'])
    await nextTurn()
    expect(completed).toEqual(['a', 'b', 'c', 'd', 'e'])
    await nextTurn()
    expect(completed).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    request('g', 1)
    expect(completed.at(-1)).toBe('g')
  })

  it('is used for requests before bodies, but each turn processes one body', async () => {
    const { completed, request, body } = front()
    const whole = limits.requestTurnMs
    body('x', 'body 1', whole)
    for (const name of ['body 2', 'body 3']) body('x', name, whole)
    request('a', whole)
    request('b', whole)
    expect(completed).toEqual(['body 1'])
    await nextTurn()
    expect(completed).toEqual(['body 1', 'a', 'body 2'])
    // It arrives between two turns, and waits behind earlier requests.
    request('c', 1)
    await nextTurn()
    expect(completed).toEqual(['body 1', 'a', 'body 2', 'b', 'body 3'])
    await nextTurn()
    expect(completed.at(-1)).toBe('c')
  })

  it('is shared by the holders of complete bodies', async () => {
    const { completed, body } = front()
    body('x', 'x1', limits.requestTurnMs)
    for (const name of ['x2', 'x3', 'x4']) body('x', name, limits.requestTurnMs)
    body('y', 'y1', limits.requestTurnMs)
    for (let turn = 0; turn < 4; turn++) await nextTurn()
    expect(completed).toEqual(['x1', 'x2', 'y1', 'x3', 'x4'])
  })
})
