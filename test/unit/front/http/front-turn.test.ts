import { describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { FrontTurn } from '../../../../src/front/http/front-turn.js'

const turned = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A front of which each piece of work takes as long as the test says. */
function front() {
  const clock = { ms: 1_000 }
  const turn = new FrontTurn(() => clock.ms)
  const done: string[] = []
  const work = (name: string, ms: number) => () => {
    clock.ms += ms
    done.push(name)
  }
  const request = (name: string, ms: number) =>
    turn.takesRequests ? work(name, ms)() : turn.requestLater(work(name, ms))
  const body = (owner: string, name: string, ms: number) =>
    turn.takesBodies ? work(name, ms)() : turn.bodyLater(owner, work(name, ms))
  return { done, request, body }
}

// 200 bodies of 64 KB whose last byte came at once held the front for 0.8 s.
describe('the time of a turn', () => {
  it('is for what arrives, until it is spent; the rest has the next turns, as much as fits into each', async () => {
    const { done, request } = front()
    const half = limits.requestTurnMs / 2
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) request(name, half)
    expect(done).toEqual(['a', 'b'])
    await turned()
    expect(done).toEqual(['a', 'b', 'c'])
    await turned()
    expect(done).toEqual(['a', 'b', 'c', 'd', 'e'])
    await turned()
    expect(done).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    request('g', 1)
    expect(done.at(-1)).toBe('g')
  })

  it('is for requests before bodies, but one body is carried out in each', async () => {
    const { done, request, body } = front()
    const whole = limits.requestTurnMs
    body('x', 'body 1', whole)
    for (const name of ['body 2', 'body 3']) body('x', name, whole)
    request('a', whole)
    request('b', whole)
    expect(done).toEqual(['body 1'])
    await turned()
    expect(done).toEqual(['body 1', 'a', 'body 2'])
    // It arrives between two turns, and waits behind what has waited for longer.
    request('c', 1)
    await turned()
    expect(done).toEqual(['body 1', 'a', 'body 2', 'b', 'body 3'])
    await turned()
    expect(done.at(-1)).toBe('c')
  })

  it('is shared by those whose bodies are complete', async () => {
    const { done, body } = front()
    body('x', 'x1', limits.requestTurnMs)
    for (const name of ['x2', 'x3', 'x4']) body('x', name, limits.requestTurnMs)
    body('y', 'y1', limits.requestTurnMs)
    for (let turn = 0; turn < 4; turn++) await turned()
    expect(done).toEqual(['x1', 'x2', 'y1', 'x3', 'x4'])
  })
})
