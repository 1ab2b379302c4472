import { describe, expect, it } from 'vitest'
import { Writers } from '../../../../src/cluster/database/nodes.js'
import type { Member } from '../../../../src/cluster/members/member.js'

const row = (some: Partial<Member>): Member => ({
  node: 'a',
  incarnation: 5,
  ended: 0,
  heartbeat: 1,
  alive: true,
  address: '',
  formatMax: 1,
  settingsDigest: '',
  report: '{}',
  ...some,
})
const rows = (...members: Member[]) => ({ members, faults: [] })
const writer = { node: 'a', incarnation: 5 }

describe('the writer of a segment', () => {
  it('is alive or has ended according to its own row, or the row of its next incarnation', () => {
    const writers = new Writers(1_000)
    expect(writers.isAlive(writer, rows(row({})), 0)).toBe(true)
    expect(writers.isAlive(writer, rows(row({ alive: false })), 0)).toBe(false)
    expect(writers.isAlive(writer, rows(row({ incarnation: 6, ended: 5 })), 0)).toBe(false)
  })

  it.each([
    ['its row is missing', rows()],
    ['its row does not verify', { members: [], faults: [{ node: 'a', reason: 'does not verify' }] }],
    ['its name joined without its row', rows(row({ incarnation: 6, ended: 0 }))],
    ['an earlier row was put back', rows(row({ incarnation: 4, alive: false }))],
  ])('is alive until its lease must have expired if %s', (_name, unknown) => {
    const writers = new Writers(1_000)
    expect(writers.isAlive(writer, unknown, 10)).toBe(true)
    expect(writers.isAlive(writer, unknown, 1_009)).toBe(true)
    expect(writers.isAlive(writer, unknown, 1_010)).toBe(false)
    // The wait starts again after each read that had its row.
    expect(writers.isAlive(writer, rows(row({})), 1_020)).toBe(true)
    expect(writers.isAlive(writer, unknown, 1_030)).toBe(true)
  })
})
