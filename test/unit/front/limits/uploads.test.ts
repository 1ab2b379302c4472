import { describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import type { Refusal } from '../../../../src/base/errors.js'
import { ownBodies } from '../../../../src/front/limits/bounds.js'
import { BoundedBytes } from '../../../../src/front/limits/bounded-bytes.js'
import { OwnCount } from '../../../../src/front/limits/shares.js'
import { GatheredBytes } from '../../../../src/base/gathered-bytes.js'
import { OpenUploads } from '../../../../src/front/limits/uploads.js'
import type { Principal } from '../../../../src/front/routes/route.js'

const MEBIBYTE = 1 << 20
const perPrincipal = limits.bodyBytesPerPrincipalMax / MEBIBYTE
const inAll = limits.bodyBytesInMemoryMax / MEBIBYTE

/** Uploads, each with why it was ended. */
function uploads() {
  const open = new OpenUploads(ownBodies())
  return {
    open,
    hold: (id: string) => {
      const ends: Refusal[] = []
      const principal: Principal = { id, scopes: new Set(), agents: [] }
      return { upload: open.hold({ principal, owner: id }, (refusal) => ends.push(refusal)), ends }
    },
  }
}

/** Holds bodies of 8 MiB each until one is refused. @returns how many there are */
function fill(hold: ReturnType<typeof uploads>['hold'], id: string): number {
  for (let count = 0; ; count++) if (!hold(id).upload.add(8 * MEBIBYTE)) return count
}

// 350 batches of 8 MB that never ended took 2.5 GB.
describe('the memory of bodies', () => {
  it('is bounded for each principal: the body that exceeds it is ended, once, and the others stay', () => {
    const { hold } = uploads()
    const first = hold('a')
    expect(first.upload.add(8 * MEBIBYTE)).toBe(true)
    expect(fill(hold, 'a')).toBe(perPrincipal / 8 - 1)
    const another = hold('a')
    expect([another.upload.add(1), another.upload.add(1)]).toEqual([false, false])
    expect(another.ends).toMatchObject([{ code: 'overloaded', retryAfterSecs: 1 }])
    expect(first.ends).toEqual([])
    expect(hold('b').upload.add(8 * MEBIBYTE)).toBe(true)
  })

  it('is bounded in all', () => {
    const { hold } = uploads()
    const counts = Array.from({ length: inAll / perPrincipal }, (_none, n) => fill(hold, `p${n}`))
    expect(counts).toEqual(counts.map(() => perPrincipal / 8))
    expect(fill(hold, 'another')).toBe(0)
  })

  it('is given back by parts, and all of it when the upload is released, however it ended', () => {
    const { hold } = uploads()
    const { upload } = hold('a')
    upload.add(perPrincipal * MEBIBYTE)
    upload.give(8 * MEBIBYTE)
    const other = hold('a')
    expect([other.upload.add(8 * MEBIBYTE), other.upload.add(1)]).toEqual([true, false])
    other.upload.release()
    upload.release()
    upload.release()
    expect(fill(hold, 'a')).toBe(perPrincipal / 8)
  })

  it('has no row for an owner whose bodies have no bytes', () => {
    const owners: string[] = []
    const shares = { take: (owner: string) => owners.push(owner) > 0, add() {}, has: () => true, give() {} }
    const open = new OpenUploads(new BoundedBytes({ max: 1, total: new OwnCount(), shares }))
    expect(open.holdUnknown('192.0.2.1', () => {}).add(0)).toBe(true)
    expect(owners).toEqual([])
  })

  it('does not count a body that has ended any further', () => {
    const { open, hold } = uploads()
    const { upload, ends } = hold('a')
    open.endOf('a')
    expect(ends).toMatchObject([{ code: 'unauthorized' }])
    expect(upload.add(1)).toBe(false)
    upload.release()
    expect(fill(hold, 'a')).toBe(perPrincipal / 8)
  })
})

describe('bytes that are gathered', () => {
  it('are counted by the memory that they have, and given back when they are taken', () => {
    const { hold } = uploads()
    const counted: number[] = []
    const memory = {
      add: (bytes: number) => counted.push(bytes) > 0,
      give: (bytes: number) => void counted.push(-bytes),
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
