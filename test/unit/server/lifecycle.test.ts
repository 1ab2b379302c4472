import { expect, it } from 'vitest'
import { Lifecycle, type Part } from '../../../src/server/lifecycle.js'

/** Parts that note what becomes of them, of which some fail. */
function noted(failing: string[] = []): { parts: Part[]; happened: string[] } {
  const happened: string[] = []
  const note = async (what: string) => {
    happened.push(what)
    if (failing.includes(what)) throw new Error(`${what} fails`)
  }
  const part = (name: string) => ({
    name,
    start: () => note(`start ${name}`),
    stop: () => note(`stop ${name}`),
  })
  const last = { name: 'last', stop: () => note('stop last') }
  return { parts: [part('store'), part('shards'), last], happened }
}

it('starts parts in their order and stops them in the reverse one', async () => {
  const { parts, happened } = noted()
  const lifecycle = new Lifecycle(parts)
  await lifecycle.start(new AbortController().signal)
  await lifecycle.stop()
  await lifecycle.stop()
  expect(happened).toEqual(['start store', 'start shards', 'stop last', 'stop shards', 'stop store'])
})

it('stops what a start that failed has begun, and nothing else', async () => {
  const { parts, happened } = noted(['start shards'])
  const lifecycle = new Lifecycle(parts)
  await expect(lifecycle.start(new AbortController().signal)).rejects.toThrow('start shards fails')
  await lifecycle.stop()
  expect(happened).toEqual(['start store', 'start shards', 'stop shards', 'stop store'])
})

it('starts nothing more once the server is to stop', async () => {
  const { parts, happened } = noted()
  const stopping = new AbortController()
  const lifecycle = new Lifecycle([{ name: 'signal', start: () => stopping.abort() }, ...parts])
  await expect(lifecycle.start(stopping.signal)).rejects.toBe(stopping.signal.reason)
  expect(happened).toEqual([])
})

it('stops all parts even where one of them cannot be stopped, and names that', async () => {
  const { parts, happened } = noted(['stop last', 'stop shards'])
  const lifecycle = new Lifecycle(parts)
  await lifecycle.start(new AbortController().signal)
  await expect(lifecycle.stop()).rejects.toThrow('Could not stop last: Error: stop last fails')
  expect(happened.slice(2)).toEqual(['stop last', 'stop shards', 'stop store'])
})
