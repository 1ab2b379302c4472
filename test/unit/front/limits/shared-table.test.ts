import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { SharedTable, allocateTable } from '../../../../src/front/limits/shared-table.js'
import { fc } from '../../../support/fast-check.js'

const valueOf = (table: SharedTable, key: string) => table.withSlot(key, ({ value }) => value)

describe('a table in shared memory', () => {
  it('has the same entries as a map after any sequence of changes', () => {
    const step = fc.record({ key: fc.nat(20), value: fc.option(fc.nat(1_000), { nil: undefined }) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.string(), (steps, secret) => {
        const table = new SharedTable(allocateTable(21, secret))
        const map = new Map<string, number>()
        for (const { key, value } of steps) {
          const name = `key ${key}`
          table.withSlot(name, (slot) => (value === undefined ? slot.remove() : slot.set(value)))
          if (value === undefined) map.delete(name)
          else map.set(name, value)
        }
        expect(table.size).toBe(map.size)
        for (let key = 0; key <= 20; key++) expect(valueOf(table, `key ${key}`)).toBe(map.get(`key ${key}`))
      }),
    )
  })

  it('reports that it is full, and evicts an entry that may be evicted', () => {
    const table = new SharedTable(allocateTable(2, 'secret'))
    for (const [key, value] of [['a', 1] as const, ['b', 2] as const])
      table.withSlot(key, (slot) => slot.set(value))
    expect(table.withSlot('a', ({ isFull }) => isFull)).toBe(false)
    expect(table.withSlot('c', ({ isFull }) => isFull)).toBe(true)
    expect(table.withSlot('c', (slot) => slot.evictOne((value) => value > 2, 64))).toBe(false)
    table.withSlot('c', (found) => {
      const slot = found.evictOne((value) => value === 1, 64)
      if (slot !== false) slot.set(3)
    })
    expect([valueOf(table, 'a'), valueOf(table, 'b'), valueOf(table, 'c')]).toEqual([undefined, 2, 3])
  })

  it('loses no change when several threads change the same keys', async () => {
    const memory = allocateTable(8, 'secret')
    const source = `
      const { parentPort, workerData } = require('node:worker_threads')
      import(workerData.module).then(({ SharedTable }) => {
        const table = new SharedTable(workerData.memory)
        for (let n = 0; n < 20_000; n++)
          table.withSlot('key ' + (n % 5), (slot) => slot.set((slot.value ?? 0) + 1))
        parentPort.postMessage('done')
      })`
    const module = new URL('../../../../dist/src/front/limits/shared-table.js', import.meta.url).href
    const threads = Array.from(
      { length: 3 },
      () => new Worker(source, { eval: true, workerData: { memory, module } }),
    )
    await Promise.all(
      threads.map(
        (thread) =>
          new Promise((resolve, reject) => {
            thread.once('message', resolve)
            thread.once('error', reject)
          }),
      ),
    )
    const table = new SharedTable(memory)
    for (let key = 0; key < 5; key++) expect(valueOf(table, `key ${key}`)).toBe(12_000)
    await Promise.all(threads.map((thread) => thread.terminate()))
  })
})
