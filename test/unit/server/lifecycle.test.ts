import { expect, it } from 'vitest'
import { Lifecycle, type Part } from '../../../src/server/lifecycle.js'

/** Parts that record their calls, some of which fail. */
function recorded(failing: string[] = []): { parts: Part[]; events: string[] } {
  const events: string[] = []
  const record = async (what: string) => {
    events.push(what)
    if (failing.includes(what)) throw new Error(`${what} fails`)
  }
  const part = (name: string) => ({
    name,
    start: () => record(`start ${name}`),
    stop: () => record(`stop ${name}`),
  })
  const last = { name: 'last', stop: () => record('stop last') }
  return { parts: [part('store'), part('shards'), last], events }
}

it('starts parts in order and stops them in the reverse order', async () => {
  const { parts, events } = recorded()
  const lifecycle = new Lifecycle(parts)
  await lifecycle.start(new AbortController().signal)
  await lifecycle.stop()
  await lifecycle.stop()
  expect(events).toEqual(['start store', 'start shards', 'stop last', 'stop shards', 'stop store'])
})

it('stops the parts that a failed start has begun, and no others', async () => {
  const { parts, events } = recorded(['start shards'])
  const lifecycle = new Lifecycle(parts)
  await expect(lifecycle.start(new AbortController().signal)).rejects.toThrow('start shards fails')
  await lifecycle.stop()
  expect(events).toEqual(['start store', 'start shards', 'stop shards', 'stop store'])
})

it('starts no further part once the server is to stop', async () => {
  const { parts, events } = recorded()
  const stopping = new AbortController()
  const lifecycle = new Lifecycle([{ name: 'signal', start: () => stopping.abort() }, ...parts])
  await expect(lifecycle.start(stopping.signal)).rejects.toBe(stopping.signal.reason)
  expect(events).toEqual([])
})

it('stops all parts even if one of them fails, and names the first failure', async () => {
  const { parts, events } = recorded(['stop last', 'stop shards'])
  const lifecycle = new Lifecycle(parts)
  await lifecycle.start(new AbortController().signal)
  await expect(lifecycle.stop()).rejects.toThrow('Could not stop last: Error: stop last fails')
  expect(events.slice(2)).toEqual(['stop last', 'stop shards', 'stop store'])
})
