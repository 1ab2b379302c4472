import { describe, expect, it } from 'vitest'
import { type NodeRow, Writers } from '../../../../src/cluster/database/nodes.js'

const row = (some: Partial<NodeRow>): NodeRow => ({
  node: 'a',
  incarnation: 5,
  ended: 0,
  beat: 1,
  alive: true,
  address: '',
  formatMax: 1,
  settingsDigest: '',
  owns: '{}',
  ...some,
})
const rows = (...members: NodeRow[]) => ({ members, faults: [] })
const writer = { node: 'a', incarnation: 5 }

describe('the writer of a segment', () => {
  it('is alive, or has ended, as its own row says, or that of its next incarnation', () => {
    const writers = new Writers(1_000)
    expect(writers.isAlive(writer, rows(row({})), 0)).toBe(true)
    expect(writers.isAlive(writer, rows(row({ alive: false })), 0)).toBe(false)
    expect(writers.isAlive(writer, rows(row({ incarnation: 6, ended: 5 })), 0)).toBe(false)
  })

  it.each([
    ['its row is gone', rows()],
    ['its row does not verify', { members: [], faults: [{ node: 'a', reason: 'does not verify' }] }],
    ['its name joined without its row', rows(row({ incarnation: 6, ended: 0 }))],
    ['an earlier row was put back', rows(row({ incarnation: 4, alive: false }))],
  ])('is alive until its lease must be over, where %s', (_name, hidden) => {
    const writers = new Writers(1_000)
    expect(writers.isAlive(writer, hidden, 10)).toBe(true)
    expect(writers.isAlive(writer, hidden, 1_009)).toBe(true)
    expect(writers.isAlive(writer, hidden, 1_010)).toBe(false)
    // Each time that its row is there it is waited for anew.
    expect(writers.isAlive(writer, rows(row({})), 1_020)).toBe(true)
    expect(writers.isAlive(writer, hidden, 1_030)).toBe(true)
  })
})
