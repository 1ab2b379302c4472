import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../dist/src/base/limits/limits.js'
import { OtlpPool } from '../../dist/src/otlp/pool.js'
import type { OtlpCall, OtlpTask } from '../../src/otlp/tasks.js'
import { otlpWire } from '../support/http/otlp.js'

let pool: OtlpPool

beforeEach(() => {
  pool = new OtlpPool()
})
afterEach(() => pool.close())

/** A request with a record. */
function callOf(holder: string, from?: OtlpTask['from']): OtlpCall {
  const body = new Uint8Array(otlpWire('logs', [{ records: [{ severityNumber: 9 }] }]))
  const sizes = { linesBytesMax: 1_000, recordBytesMax: 1_000, ...(from && { from }) }
  const task = { body, signal: 'logs', encoding: 'protobuf', agent: holder, keeps: false, ...sizes } as const
  return { task, holder, gone: new Int32Array(new SharedArrayBuffer(4)) }
}

const codeOf = (decoding: Promise<unknown>) => decoding.catch((error) => error.refusal.code)

describe('the pool that decodes OTLP requests', () => {
  it('takes the requests of holders by turns', async () => {
    const order: string[] = []
    const holders = [...'aaaaaaaaaa', ...'bb', 'c']
    await Promise.all(
      holders.map(async (holder) => {
        await pool.decode(callOf(holder))
        order.push(holder)
      }),
    )
    // In order of arrival, only the first holder would be among them. One of the others may still be in a slow thread.
    expect(order.slice(0, 8).filter((holder) => holder !== 'a').length).toBeGreaterThanOrEqual(2)
  })

  it('decodes no request that was cancelled while it waited, on any front', async () => {
    const calls = Array.from({ length: limits.otlpThreadsMax + 2 }, () => callOf('a'))
    const decoded = calls.map((call) => codeOf(pool.decode(call)))
    Atomics.store(calls.at(-1)!.gone, 0, 1)
    const found = await Promise.all(decoded)
    const decodedPart = expect.objectContaining({ refused: [] })
    expect(found).toEqual([...calls.slice(1).map(() => decodedPart), 'unavailable'])
    expect(calls.map(({ task }) => task.body.length > 0)).toEqual(
      calls.map((_call, n) => n === calls.length - 1),
    )
  })

  it('refuses a request when too many wait, but not the next part of one', async () => {
    const waiting = Array.from({ length: limits.otlpThreadsMax + limits.otlpQueueMax }, () =>
      pool.decode(callOf('a')),
    )
    expect(pool.figures.waiting).toBe(limits.otlpQueueMax)
    const next = { done: 1, offsets: [], ends: new Map<number, number>() }
    const [refused, decoded] = [codeOf(pool.decode(callOf('b'))), pool.decode(callOf('b', next))]
    expect(await refused).toBe('overloaded')
    expect(await decoded).toMatchObject({ refused: [] })
    await Promise.all(waiting)
  })
})
