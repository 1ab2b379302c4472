import { fc } from '../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { EventStreamParser, type ServerSentEvent } from '../../src/client/sse.js'

function parse(...pieces: string[]): ServerSentEvent[] {
  const parser = new EventStreamParser()
  return pieces.flatMap((piece) => parser.push(piece))
}

const record = { event: 'record', data: '{"a":1}', id: '7' }

describe('the parser of text/event-stream', () => {
  it('reads an event with its type, data and id', () => {
    expect(parse('id: 7\nevent: record\ndata: {"a":1}\n\n')).toEqual([record])
  })

  it.each([['\n'], ['\r'], ['\r\n']])('accepts %j as the end of a line', (end) => {
    expect(parse(['id: 7', 'event: record', 'data: {"a":1}', '', ''].join(end))).toEqual([record])
  })

  it('joins several data lines by a line feed', () => {
    expect(parse('data: one\ndata:two\ndata\n\n')).toEqual([{ event: 'message', data: 'one\ntwo\n', id: '' }])
  })

  it('removes one space after the colon and no more', () => {
    expect(parse('data:  two\n\n')).toEqual([{ event: 'message', data: ' two', id: '' }])
  })

  it('ignores comments and unknown fields', () => {
    expect(parse(': comment\n\nother: x\ndata: y\n\n')).toEqual([{ event: 'message', data: 'y', id: '' }])
  })

  it('removes a byte order mark at the beginning only, alone or not', () => {
    const event = { event: 'message', data: '\uFEFF', id: '' }
    expect(parse('\uFEFFdata: \uFEFF\n\n')).toEqual([event])
    expect(parse('\uFEFF', 'data: \uFEFF\n\n')).toEqual([event])
  })

  it('uses the last id for events without an id', () => {
    expect(parse('id: 1\ndata: a\n\ndata: b\n\n').map((event) => event.id)).toEqual(['1', '1'])
  })

  it('returns a block that has an id but no data', () => {
    expect(parse('id: 9\n\n')).toEqual([{ event: 'message', data: '', id: '9' }])
  })

  it('ignores an id with a NUL and a retry that is not digits', () => {
    const parser = new EventStreamParser()
    expect(parser.push('id: 1\0\nretry: soon\ndata: a\n\n')).toEqual([
      { event: 'message', data: 'a', id: '' },
    ])
    expect(parser.retryMs).toBeUndefined()
    parser.push('retry: 250\n')
    expect(parser.retryMs).toBe(250)
  })

  it('returns nothing for an incomplete event', () => {
    expect(parse('data: a\n')).toEqual([])
  })

  it('returns an event that ends with a lone CR without waiting for the next piece', () => {
    expect(parse('data: a\r\r')).toEqual([{ event: 'message', data: 'a', id: '' }])
  })

  it('refuses an endless event', () => {
    const parser = new EventStreamParser()
    const piece = 'x'.repeat(8_388_608)
    expect(() => [parser.push(`data: ${piece}`), parser.push(piece), parser.push(piece)]).toThrow(RangeError)
  })

  it('returns the same events however the stream is split into pieces', () => {
    const line = fc.oneof(
      fc.constantFrom(
        '',
        'data',
        'data: a',
        'data:b:c',
        'id: 4',
        'id',
        'event: record',
        ': note',
        'retry: 5',
        '\uFEFF',
      ),
      fc.string({ maxLength: 6 }),
    )
    const stream = fc.array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n')), { maxLength: 30 })
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 8 }), (lines, cuts) => {
        const text = lines.flat().join('')
        const offsets = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length].toSorted(
          (a, b) => a - b,
        )
        const pieces = offsets.slice(1).map((end, index) => text.slice(offsets[index], end))
        expect(parse(...pieces)).toEqual(parse(text))
      }),
    )
  })
})
