import { describe, expect, it } from 'vitest'
import { limits } from '../../../../../src/base/limits/limits.js'
import { RecentEvents } from '../../../../../src/front/http/streams/recent-events.js'
import type { StreamEvent } from '../../../../../src/protocol/stream-messages.js'

const event = (seq: number, bytes = 100): StreamEvent => ({
  agent: 'a',
  seq,
  hlc: '0199c5b8f2a4-0003',
  data: JSON.stringify({ seq, filler: 'x'.repeat(bytes) }),
})

/** Seqs of the events in a text. */
const seqsOf = (text: string) => [...text.matchAll(/^id: (\d+)$/gm)].map(([, seq]) => Number(seq))

describe('the latest events of an agent', () => {
  it('are unknown before the first event, so the store is read', () => {
    expect(new RecentEvents().from(0)).toBeUndefined()
  })

  it('return the events after a position, and report the end', () => {
    const recent = new RecentEvents()
    recent.push([event(5), event(7)])
    recent.push([event(8)])
    const page = recent.from(6)
    expect(seqsOf(page?.text ?? '')).toEqual([7, 8])
    expect(page).toMatchObject({ nextSeq: 9, end: true })
  })

  it('return nothing and report the end for a stream that has received the last event', () => {
    const recent = new RecentEvents()
    recent.push([event(5)])
    expect(recent.from(6)).toEqual({ text: '', nextSeq: 6, end: true })
  })

  it('are undefined for a position before the oldest one in memory', () => {
    const recent = new RecentEvents()
    recent.push([event(5)])
    expect(recent.from(4)).toBeUndefined()
  })

  it('are the latest ones within a limit of bytes', () => {
    const recent = new RecentEvents()
    for (let seq = 1; seq <= 500; seq++) recent.push([event(seq, 1_000)])
    expect(recent.from(1)).toBeUndefined()
    const count = Math.floor(limits.streamRecentBytes / 1_100)
    expect(seqsOf(recent.from(501 - count)?.text ?? '')[0]).toBe(501 - count)
    expect(recent.from(499)).toMatchObject({ nextSeq: 501, end: true })
  })

  it('are returned in pages of one write, without loss', () => {
    const recent = new RecentEvents()
    recent.push(Array.from({ length: 100 }, (_none, index) => event(index, 1_000)))
    const seen: number[] = []
    for (let at = 0, end = false; !end;) {
      const page = recent.from(at)
      if (page === undefined) throw new Error('Expected all events to be in memory')
      expect(page.text.length).toBeLessThanOrEqual(limits.streamBufferBytes)
      seen.push(...seqsOf(page.text))
      at = page.nextSeq
      end = page.end
    }
    expect(seen).toEqual(Array.from({ length: 100 }, (_none, index) => index))
  })

  it('include an event that is larger than one write as its own page', () => {
    const recent = new RecentEvents()
    recent.push([event(1, limits.streamBufferBytes + 10), event(2)])
    expect(recent.from(1)).toMatchObject({ nextSeq: 2, end: false })
  })
})
