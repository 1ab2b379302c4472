import { describe, expect, it } from 'vitest'
import { limits } from '../../../../../src/base/limits/limits.js'
import { RecentEvents } from '../../../../../src/front/http/streams/recent-events.js'
import type { StreamEvent } from '../../../../../src/protocol/messages.js'

const event = (seq: number, bytes = 100): StreamEvent => ({
  agent: 'a',
  seq,
  hlc: '0199c5b8f2a4-0003',
  data: JSON.stringify({ seq, filler: 'x'.repeat(bytes) }),
})

/** Seqs of the events in a text. */
const seqsOf = (text: string) => [...text.matchAll(/^id: (\d+)$/gm)].map(([, seq]) => Number(seq))

describe('the latest events of an agent', () => {
  it('know nothing before the first event, so that the store is asked', () => {
    expect(new RecentEvents().from(0)).toBeUndefined()
  })

  it('give what is behind a place, and say that it is all', () => {
    const recent = new RecentEvents()
    recent.push([event(5), event(7)])
    recent.push([event(8)])
    const page = recent.from(6)
    expect(seqsOf(page?.text ?? '')).toEqual([7, 8])
    expect(page).toMatchObject({ nextSeq: 9, end: true })
  })

  it('give nothing, and say that it is all, to a reader that has seen the last event', () => {
    const recent = new RecentEvents()
    recent.push([event(5)])
    expect(recent.from(6)).toEqual({ text: '', nextSeq: 6, end: true })
  })

  it('send a reader to the store whose place is older than what is kept', () => {
    const recent = new RecentEvents()
    recent.push([event(5)])
    expect(recent.from(4)).toBeUndefined()
  })

  it('keep a bounded number of bytes, the latest', () => {
    const recent = new RecentEvents()
    for (let seq = 1; seq <= 500; seq++) recent.push([event(seq, 1_000)])
    expect(recent.from(1)).toBeUndefined()
    const kept = Math.floor(limits.streamRecentBytes / 1_100)
    expect(seqsOf(recent.from(501 - kept)?.text ?? '')[0]).toBe(501 - kept)
    expect(recent.from(499)).toMatchObject({ nextSeq: 501, end: true })
  })

  it('give at most one write at once, and go on from there without loss', () => {
    const recent = new RecentEvents()
    recent.push(Array.from({ length: 100 }, (_none, index) => event(index, 1_000)))
    const seen: number[] = []
    for (let at = 0, end = false; !end;) {
      const page = recent.from(at)
      if (page === undefined) throw new Error('Expected all events to be kept')
      expect(page.text.length).toBeLessThanOrEqual(limits.streamBufferBytes)
      seen.push(...seqsOf(page.text))
      at = page.nextSeq
      end = page.end
    }
    expect(seen).toEqual(Array.from({ length: 100 }, (_none, index) => index))
  })

  it('give an event that is larger than one write by itself', () => {
    const recent = new RecentEvents()
    recent.push([event(1, limits.streamBufferBytes + 10), event(2)])
    expect(recent.from(1)).toMatchObject({ nextSeq: 2, end: false })
  })
})
