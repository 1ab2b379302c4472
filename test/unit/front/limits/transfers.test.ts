import { describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import type { Refusal } from '../../../../src/base/errors.js'
import { bodyBytes } from '../../../../src/front/limits/bounds.js'
import { Quota } from '../../../../src/base/quota.js'
import { GatheredBytes } from '../../../../src/base/gathered-bytes.js'
import { MemoryTurns, OpenTransfers } from '../../../../src/front/limits/transfers.js'
import type { Principal } from '../../../../src/front/routes/route.js'

const MEBIBYTE = 1 << 20
const perPrincipal = limits.bodyBytesPerPrincipalMax / MEBIBYTE
const total = limits.bodyBytesInMemoryMax / MEBIBYTE
const spare = limits.bodyMemorySpareBytes / MEBIBYTE

/** Open transfers, each with the refusals that ended it. */
function transfers() {
  const open = new OpenTransfers(new Quota(bodyBytes))
  return {
    open,
    hold: (id: string) => {
      const ends: Refusal[] = []
      const principal: Principal = { id, scopes: new Set(), agents: [] }
      return { upload: open.begin({ principal, holder: id }, (refusal) => ends.push(refusal)), ends }
    },
  }
}

/** Adds bodies of 8 MiB until one is refused. @returns how many were accepted */
function fill(hold: ReturnType<typeof transfers>['hold'], id: string): number {
  for (let count = 0; ; count++) if (!hold(id).upload.reserve(8 * MEBIBYTE)) return count
}

// 350 batches of 8 MB that never ended took 2.5 GB.
describe('the memory of bodies', () => {
  it('is limited per principal: only the body that exceeds the limit is ended, once', () => {
    const { hold } = transfers()
    const first = hold('a')
    expect(first.upload.reserve(8 * MEBIBYTE)).toBe(true)
    expect(fill(hold, 'a')).toBe(perPrincipal / 8 - 1)
    const exceeding = hold('a')
    expect([exceeding.upload.reserve(1), exceeding.upload.reserve(1)]).toEqual([false, false])
    expect(exceeding.ends).toMatchObject([{ code: 'overloaded', retryAfterSecs: 1 }])
    expect(first.ends).toEqual([])
    expect(hold('b').upload.reserve(8 * MEBIBYTE)).toBe(true)
  })

  it('is limited in total', () => {
    const { hold } = transfers()
    const counts = Array.from({ length: total / perPrincipal }, (_none, n) => fill(hold, `p${n}`))
    expect(counts).toEqual(counts.map(() => perPrincipal / 8))
    expect(fill(hold, 'another')).toBe(0)
  })

  it('is released in parts, and completely when the upload is released', () => {
    const { hold } = transfers()
    const { upload } = hold('a')
    upload.reserve(perPrincipal * MEBIBYTE)
    upload.release(8 * MEBIBYTE)
    const other = hold('a')
    expect([other.upload.reserve(8 * MEBIBYTE), other.upload.reserve(1)]).toEqual([true, false])
    other.upload.finish()
    upload.finish()
    upload.finish()
    expect(fill(hold, 'a')).toBe(perPrincipal / 8)
  })

  it('has no entry for a holder whose bodies have no bytes', () => {
    const holders: string[] = []
    const holdings = { total: 0, change: (holder: string) => holders.push(holder) > 0 }
    const open = new OpenTransfers(new Quota({}, holdings))
    const principal: Principal = { id: 'a', scopes: new Set(), agents: [] }
    expect(open.begin({ principal, holder: 'a' }, () => {}).reserve(0)).toBe(true)
    expect(holders).toEqual([])
  })

  it('does not count further bytes of an ended body', () => {
    const { open, hold } = transfers()
    const { upload, ends } = hold('a')
    open.endPrincipal('a')
    expect(ends).toMatchObject([{ code: 'unauthorized' }])
    expect(upload.reserve(1)).toBe(false)
    upload.finish()
    expect(fill(hold, 'a')).toBe(perPrincipal / 8)
  })
})

describe('memory that is reserved', () => {
  const holder = 'a'
  const isCancelled = () => false

  it('is given in order of arrival when other bodies of the holder release theirs', async () => {
    const { hold } = transfers()
    const { upload: first } = hold(holder)
    expect(await first.reserveWhenFree((perPrincipal - spare) * MEBIBYTE, isCancelled)).toBeUndefined()
    const order: number[] = []
    const waiting = [8, 1, 7].map(async (mebibytes, n) => {
      const { upload } = hold(holder)
      expect(await upload.reserveWhenFree(mebibytes * MEBIBYTE, isCancelled)).toBeUndefined()
      order.push(n)
    })
    expect(await hold('b').upload.reserveWhenFree(8 * MEBIBYTE, isCancelled)).toBeUndefined()
    first.release(4 * MEBIBYTE)
    await Promise.resolve()
    expect(order).toEqual([])
    first.finish()
    await Promise.all(waiting)
    expect(order).toEqual([0, 1, 2])
    expect(fill(hold, holder)).toBe(perPrincipal / 8 - 2)
  })

  it('is given as soon as other holders release the memory of all', async () => {
    const { hold } = transfers()
    const others = Array.from({ length: total / perPrincipal }, (_none, n) => hold(`p${n}`).upload)
    for (const upload of others) upload.reserve(perPrincipal * MEBIBYTE)
    const { upload } = hold(holder)
    const reserved = upload.reserveWhenFree(MEBIBYTE, isCancelled)
    others[0]?.finish()
    expect(await reserved).toBeUndefined()
  })

  // Three large requests took so much that those that would have waited could not arrive, and were refused.
  it('leaves enough for requests that arrive and wait', async () => {
    const { hold } = transfers()
    const { upload } = hold(holder)
    expect(await upload.reserveWhenFree((perPrincipal - spare - 1) * MEBIBYTE, isCancelled)).toBeUndefined()
    const { upload: next } = hold(holder)
    expect(next.reserve((spare / 2) * MEBIBYTE)).toBe(true)
    const reserved = next.reserveWhenFree(2 * MEBIBYTE, isCancelled)
    expect(fill(hold, holder)).toBe(spare / 16)
    upload.finish()
    expect(await reserved).toBeUndefined()
  })

  it('is refused if too many wait, and not given to a cancelled upload', async () => {
    const { hold } = transfers()
    const { upload } = hold(holder)
    upload.reserve(perPrincipal * MEBIBYTE)
    let isEnded = false
    const waiting = Array.from({ length: limits.bodyMemoryQueueMax }, (_none, n) => {
      return hold(holder).upload.reserveWhenFree(MEBIBYTE / 2, () => n === 0 && isEnded)
    })
    expect(await hold(holder).upload.reserveWhenFree(1, isCancelled)).toMatchObject({
      code: 'overloaded',
      retryAfterSecs: 1,
    })
    // A cancelled upload does not take the place of another one, also before the next look at the queue.
    isEnded = true
    const next = hold(holder).upload.reserveWhenFree(MEBIBYTE / 2, isCancelled)
    upload.finish()
    expect(await waiting[0]).toMatchObject({ code: 'overloaded' })
    expect(await Promise.all([...waiting.slice(1), next])).toEqual(waiting.map(() => undefined))
    expect(fill(hold, holder)).toBe((perPrincipal - limits.bodyMemoryQueueMax / 2) / 8)
  })

  // uWebSockets.js delivered 3 MiB of each of ten requests; the two that ran ended, and no other could begin.
  it('is refused if those that wait hold so much that none could have its turn', async () => {
    const { hold } = transfers()
    const { upload: running } = hold(holder)
    expect(await running.reserveWhenFree((perPrincipal - spare - 1) * MEBIBYTE, isCancelled)).toBeUndefined()
    const waiting = [0, 1].map(() => hold(holder).upload)
    const reserved = waiting.map((upload) => upload.reserveWhenFree(2 * MEBIBYTE, isCancelled))
    for (const upload of waiting) upload.reserve((spare / 2) * MEBIBYTE)
    const { upload: late } = hold(holder)
    late.reserve(1)
    expect(await late.reserveWhenFree(MEBIBYTE, isCancelled)).toMatchObject({ code: 'overloaded' })
    late.finish()
    running.finish()
    expect(await Promise.all(reserved)).toEqual([undefined, undefined])
  })

  it('is refused only after the longest wait in which no body of the holder gets memory', async () => {
    const bytes = new Quota(bodyBytes)
    let nowMs = 0
    const turns = new MemoryTurns(bytes, () => nowMs)
    const filled = (perPrincipal - spare) * MEBIBYTE
    bytes.reserve(holder, filled)
    const reserve = () =>
      turns.reserveWhenFree({ holder, bytes: 1, heldBytes: () => 0, isCancelled, onReserved: () => {} })
    const waiting = [reserve(), reserve(), reserve()]
    for (const released of [1, 1, 0]) {
      nowMs += limits.bodyMemoryWaitMs - 1
      bytes.release(holder, released)
      turns.next()
    }
    nowMs++
    turns.next()
    expect(await Promise.all(waiting)).toMatchObject([undefined, undefined, { code: 'overloaded' }])
  })

  // A holder whose bodies ended took their memory again, as long as it had others that waited.
  it('is given to holders by turns when the memory of all is used', async () => {
    const bytes = new Quota(bodyBytes)
    const turns = new MemoryTurns(bytes)
    for (let n = 0; n < total / perPrincipal; n++) bytes.reserve(`p${n}`, perPrincipal * MEBIBYTE)
    const order: string[] = []
    const reserved = ['p0', 'p0', 'p0', 'p1', 'p2'].map((of) => {
      const onReserved = () => order.push(of)
      return turns.reserveWhenFree({
        holder: of,
        bytes: MEBIBYTE,
        heldBytes: () => 0,
        isCancelled,
        onReserved,
      })
    })
    for (const of of ['p0', 'p1', 'p2']) bytes.release(of, (spare + 2) * MEBIBYTE)
    turns.next()
    bytes.release('p0', 2 * MEBIBYTE)
    turns.next()
    await Promise.all(reserved)
    expect(order).toEqual(['p0', 'p1', 'p2', 'p0', 'p0'])
  })

  it('covers what is added afterwards, and is released when less is kept', async () => {
    const { hold } = transfers()
    const { upload } = hold(holder)
    upload.reserve(MEBIBYTE)
    expect(await upload.reserveWhenFree(7 * MEBIBYTE, isCancelled)).toBeUndefined()
    expect(fill(hold, holder)).toBe(perPrincipal / 8 - 1)
    expect(upload.reserve(7 * MEBIBYTE)).toBe(true)
    upload.release(8 * MEBIBYTE)
    expect(hold(holder).upload.reserve(1)).toBe(false)
    upload.keep(0)
    expect(fill(hold, holder)).toBe(1)
  })
})

describe('gathered bytes', () => {
  it('count the allocated memory, and release it when they are taken', () => {
    const { hold } = transfers()
    const counted: number[] = []
    const memory = {
      reserve: (bytes: number) => counted.push(bytes) > 0,
      release: (bytes: number) => void counted.push(-bytes),
    }
    const gathered = new GatheredBytes({ memory, bytesMax: 5_000 })
    for (let n = 0; n < 5; n++) gathered.add(Buffer.alloc(1_000))
    expect(gathered.take()).toHaveLength(5_000)
    expect(counted).toEqual([1_024, 1_024, 2_048, 904, -5_000])
    const { upload, ends } = hold('a')
    const large = new GatheredBytes({ memory: upload })
    for (let n = 0; n <= perPrincipal; n++) large.add(Buffer.alloc(MEBIBYTE))
    expect(ends).toHaveLength(1)
    expect(large.length).toBeLessThanOrEqual(perPrincipal * MEBIBYTE)
  })
})
