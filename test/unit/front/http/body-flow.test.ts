import { describe, expect, it } from 'vitest'
import { fc } from '../../../support/fast-check.js'
import type { Refusal } from '../../../../src/base/errors.js'
import { limits } from '../../../../src/base/limits/limits.js'
import type { HttpResponse } from '../../../../src/front/engine/http-listener.js'
import { BodyBuffers } from '../../../../src/front/http/body-buffers.js'
import { BodyFlow } from '../../../../src/front/http/body-flow.js'

const MEBIBYTE = 1 << 20

/** A body that an HTTP library delivers, and what its reader received. */
function bodyOf(buffers: BodyBuffers, { holder = 'key', isLast = false } = {}) {
  let onData: (part: ArrayBuffer, last: boolean) => void = () => {}
  const state = { isPaused: false, pauses: 0, received: [] as Buffer[], ended: 0, refusals: [] as Refusal[] }
  const response = {
    onData: (handler: typeof onData) => (onData = handler),
    pause: () => {
      state.isPaused = true
      state.pauses++
    },
    resume: () => (state.isPaused = false),
    close: () => expect(state.refusals).toEqual([]),
  } as unknown as HttpResponse
  const flow = new BodyFlow(response, buffers, {
    isOpen: () => state.refusals.length === 0,
    holder: () => holder,
    isLast,
    onWhole: () => {},
    // The library closes a connection immediately if its client has taken the answer.
    refuse: (refusal) => {
      state.refusals.push(refusal)
      flow.closed()
    },
  })
  return Object.assign(state, {
    flow,
    arrive: (bytes: Uint8Array, last = false) => onData(new Uint8Array(bytes).buffer, last),
    /** Reads everything. */
    readAll() {
      flow.read((part, last) => {
        state.received.push(Buffer.from(part))
        if (last) state.ended++
      })
    },
    /** Reads one part, and pauses again. */
    readOne() {
      flow.read((part, last) => {
        flow.pause()
        state.received.push(Buffer.from(part))
        if (last) state.ended++
      })
    },
  })
}

/** Whether no bytes are counted. */
const areUnused = (buffers: BodyBuffers) => buffers.hasSpace(limits.bufferedBytesMax)

/** Bytes that differ at each position. */
function numbered(length: number, from = 0): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at + 4 <= length; at += 4) bytes.writeUInt32LE(from + at, at)
  return bytes
}

// uWebSockets.js delivered up to 129 MB after the pause, and the upload ended with 503.
describe('a body that arrives although it is paused', () => {
  it('reaches its reader whole and in order, in small parts, however much arrives in one read', () => {
    const buffers = new BodyBuffers()
    const sizes = fc.array(fc.nat({ max: 3 * MEBIBYTE }), { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(sizes, fc.array(fc.nat({ max: 40 }), { maxLength: 30 }), (lengths, reads) => {
        const body = bodyOf(buffers)
        let sent = 0
        for (const [at, length] of lengths.entries()) {
          body.arrive(numbered(length, sent), at === lengths.length - 1)
          sent += length
          for (let read = 0; read < (reads[at] ?? 0) && body.ended === 0; read++) body.readOne()
        }
        while (body.ended === 0) body.readOne()
        expect(body.received.every((part) => part.length <= limits.bodyPartBytes)).toBe(true)
        let at = 0
        for (const length of lengths) at += length
        const all = Buffer.concat(body.received)
        expect(all.length).toBe(at)
        at = 0
        for (const length of lengths) {
          expect(all.subarray(at, at + length).equals(numbered(length, at))).toBe(true)
          at += length
        }
      }),
      { numRuns: 10 },
    )
    expect(areUnused(buffers)).toBe(true)
  })

  it('is refused when all bodies buffer too many bytes, and its bytes are free again', () => {
    const buffers = new BodyBuffers()
    buffers.count('another', limits.bufferedBytesMax - MEBIBYTE)
    const body = bodyOf(buffers)
    body.arrive(numbered(MEBIBYTE))
    expect(body.refusals).toEqual([])
    body.arrive(numbered(1))
    expect(body.refusals).toMatchObject([{ code: 'overloaded', retryAfterSecs: 1 }])
    buffers.count('another', MEBIBYTE - limits.bufferedBytesMax)
    expect(areUnused(buffers)).toBe(true)
  })

  // Each took 512 KiB of 32 MiB, and beyond that a file.
  it('takes no more memory than has arrived', () => {
    const buffers = new BodyBuffers()
    const bodies = Array.from({ length: 4_096 }, () => bodyOf(buffers))
    for (const body of bodies) body.arrive(numbered(8_192), true)
    expect(buffers.hasSpace(limits.bufferedBytesMax - 4_096 * 8_192)).toBe(true)
    for (const body of bodies) body.readAll()
    expect(bodies.filter(({ ended, refusals }) => ended !== 1 || refusals.length > 0)).toEqual([])
    expect(areUnused(buffers)).toBe(true)
  })

  it('lets the other bodies of its principal arrive when it has been read, and not those of others', () => {
    const buffers = new BodyBuffers()
    const [large, small, other] = [bodyOf(buffers), bodyOf(buffers), bodyOf(buffers, { holder: 'another' })]
    const paused = () => [large, small, other].map(({ isPaused }) => isPaused)
    for (const body of [large, small, other]) {
      body.readOne()
      body.arrive(numbered(8))
    }
    expect(paused()).toEqual([true, true, true])
    for (const body of [large, small, other]) body.readOne()
    expect(paused()).toEqual([false, false, false])
    large.arrive(numbered(limits.bufferedHolderBytes + MEBIBYTE))
    expect(paused()).toEqual([true, true, false])
    let reads = 0
    while (small.isPaused) reads += large.readOne() ?? 1
    expect(reads * limits.bodyPartBytes).toBeLessThanOrEqual(MEBIBYTE)
    expect(large.isPaused).toBe(true)
    small.arrive(numbered(8))
    small.arrive(numbered(8), true)
    small.readOne()
    expect(Buffer.concat(small.received).length).toBe(24)
  })

  it('stays paused when its principal has fewer bytes, if it is whole', () => {
    const buffers = new BodyBuffers()
    const [large, small] = [bodyOf(buffers), bodyOf(buffers)]
    small.flow.pause()
    small.readAll()
    expect(small.isPaused).toBe(false)
    small.arrive(numbered(8), true)
    small.flow.pauseConnection()
    large.flow.pause()
    large.readOne()
    large.arrive(numbered(limits.bufferedHolderBytes + MEBIBYTE))
    large.flow.drop()
    // uWebSockets.js would close it ten seconds later, even if its answer takes longer.
    expect(small.isPaused).toBe(true)
  })

  it('counts to its principal although its reader was known before it was paused', () => {
    const buffers = new BodyBuffers()
    const [large, small] = [bodyOf(buffers), bodyOf(buffers)]
    large.readOne()
    large.arrive(numbered(limits.bufferedHolderBytes + MEBIBYTE))
    small.flow.pause()
    small.readAll()
    expect(small.isPaused).toBe(true)
  })

  it('pauses again with each part that its reader receives while it waits for other bodies', () => {
    const buffers = new BodyBuffers()
    const [large, small] = [bodyOf(buffers), bodyOf(buffers)]
    large.flow.pause()
    large.readOne()
    large.arrive(numbered(limits.bufferedHolderBytes + MEBIBYTE))
    small.flow.pause()
    small.readAll()
    expect(small.isPaused).toBe(true)
    const before = small.pauses
    small.arrive(numbered(8))
    expect(small.pauses).toBe(before + 1)
    expect(small.received.length).toBe(1)
  })
})

describe('a chunked body', () => {
  const turnEnd = () => new Promise((resolve) => setImmediate(resolve))

  // Its end was delivered before the chunks that were joined until the end of the turn.
  it('reaches a reader whole that is known only after the library has delivered its end', async () => {
    const body = bodyOf(new BodyBuffers(), { isLast: true })
    body.flow.pause()
    body.arrive(numbered(8))
    body.arrive(new Uint8Array(0), true)
    body.readAll()
    expect(body.ended).toBe(0)
    await turnEnd()
    expect([Buffer.concat(body.received), body.ended]).toEqual([numbered(8), 1])
  })

  it('reaches a reader whole that wants more before the turn has ended', async () => {
    const body = bodyOf(new BodyBuffers(), { isLast: true })
    const large = numbered(limits.chunksHeldBytes + 4)
    body.readOne()
    body.arrive(large)
    body.arrive(numbered(8))
    body.arrive(new Uint8Array(0), true)
    body.readAll()
    expect(body.ended).toBe(0)
    await turnEnd()
    expect([Buffer.concat(body.received), body.ended]).toEqual([Buffer.concat([large, numbered(8)]), 1])
  })

  it('ends once, after all chunks, for a reader that wants more while it receives a part', async () => {
    const body = bodyOf(new BodyBuffers(), { isLast: true })
    const parts: number[] = []
    body.flow.read((part, last) => {
      parts.push(last ? -1 : part.length)
      body.flow.pause()
      body.flow.resume()
    })
    const sizes = [4, limits.chunksGatheredBytes + 4]
    for (const size of sizes) body.arrive(numbered(size))
    body.arrive(new Uint8Array(0), true)
    await turnEnd()
    expect(parts).toEqual([...sizes, -1])
  })

  it('is closed once if it is refused by the chunk with which there are too many', () => {
    const buffers = new BodyBuffers()
    buffers.count('another', limits.bufferedBytesMax)
    const body = bodyOf(buffers, { isLast: true })
    body.flow.pause()
    for (let count = 0; count < limits.smallChunksPerTurnMax; count++) body.arrive(numbered(4))
    body.arrive(numbered(limits.chunksHeldBytes + 4))
    expect(body.refusals).toMatchObject([{ code: 'overloaded' }])
  })
})
