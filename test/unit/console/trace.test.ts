import { describe, expect, it } from 'vitest'
import { spansAbove, treeOf } from '../../../src/console/parts/trace/find-trace.js'
import {
  durationOf,
  shortDurationText,
  type Telemetry,
  telemetryOf,
  traceIdOf,
} from '../../../src/console/parts/trace/telemetry.js'

const read = (type: string, members: Record<string, unknown>): Telemetry | undefined =>
  telemetryOf('shop', {
    seq: 7,
    type,
    ms: 0,
    hlc: '',
    body: '',
    members,
    state: 'active',
    sealedBy: undefined,
  })

const span = (spanId: string, parentSpanId = '', more: object = {}): Telemetry => ({
  agent: 'shop',
  seq: 1,
  isSpan: true,
  traceId: '',
  spanId,
  parentSpanId,
  name: spanId,
  service: '',
  kind: '',
  status: '',
  isError: false,
  startNs: undefined,
  endNs: undefined,
  ...more,
})

describe('spans and log records of OpenTelemetry', () => {
  it('are read from the OTLP JSON of a record', () => {
    const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }
    const found = read('otel/span', {
      name: 'charge',
      kind: 3,
      spanId: 'b7ad6b7169203331',
      startTimeUnixNano: '1790000000000000001',
      endTimeUnixNano: '1790000000012345678',
      status: { code: 2, message: 'card declined' },
      resource,
    })
    expect(found).toMatchObject({
      name: 'charge',
      kind: 'client',
      status: 'error: card declined',
      isError: true,
      service: 'shop',
    })
    expect(found && durationOf(found)).toBe(12_345_677n)
    const body = { stringValue: 'sold' }
    expect(
      read('otel/log', { body, severityNumber: 9, severityText: 'INFO', observedTimeUnixNano: '5' }),
    ).toMatchObject({ name: 'sold', kind: 'INFO', isError: false, startNs: 5n, isSpan: false })
    expect(read('reading', { name: 'charge' })).toBeUndefined()
  })

  it('are read from records that any program wrote', () => {
    const odd = {
      name: 5,
      kind: 'x',
      startTimeUnixNano: 12,
      endTimeUnixNano: '-1',
      status: 'error',
      resource: { attributes: {} },
    }
    expect(read('otel/span', odd)).toMatchObject({ name: '', kind: '', status: '', startNs: undefined })
    expect(read('otel/log', {})).toMatchObject({ name: '', startNs: undefined, endNs: undefined })
    expect(durationOf(span('a', '', { startNs: 2n, endNs: 1n }))).toBeUndefined()
  })

  it('are listed as a tree, also if spans are missing or form a circle', () => {
    const log = span('b', '', { isSpan: false, name: 'log' })
    const records = [
      span('a'),
      span('b', 'a'),
      span('c', 'a'),
      log,
      span('d', 'gone'),
      span('x', 'y'),
      span('y', 'x'),
    ]
    expect(treeOf(records).map(({ record, depth }) => `${depth} ${record.name}`)).toEqual([
      '0 a',
      '1 b',
      '2 log',
      '1 c',
      '0 d',
      '0 x',
      '1 y',
    ])
    expect(spansAbove(records, log).map(({ name }) => name)).toEqual(['a', 'b'])
    expect(spansAbove(records, span('x', 'y')).map(({ name }) => name)).toEqual(['x', 'y'])
    expect(treeOf(records.map((record) => ({ ...record, spanId: '', parentSpanId: '' })))).toHaveLength(7)
  })

  it('are found by a trace ID of 32 hex digits', () => {
    expect(traceIdOf(' 4BF92F3577B34DA6A3CE929D0E0E4736 ')).toBe('4bf92f3577b34da6a3ce929d0e0e4736')
    for (const text of ['0'.repeat(32), '4bf92f35', 'g'.repeat(32), 'a'.repeat(64)])
      expect(traceIdOf(text)).toBeUndefined()
  })

  it('have durations in readable units', () => {
    expect(
      [850n, 12_345n, 12_345_678n, 999_600_000n, 1_500_000_000n, 90_000_000_000n].map(shortDurationText),
    ).toEqual(['850 ns', '12.3 µs', '12.3 ms', '1,000 ms', '1.5 seconds', '1.5 minutes'])
  })
})
