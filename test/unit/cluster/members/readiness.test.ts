import { expect, it } from 'vitest'
import { Readiness, type ReadinessView } from '../../../../src/cluster/members/readiness.js'

const LEASE_MS = 1_000
const alone: ReadinessView = { nowMs: 0, ownsAny: false, lagMs: 0, others: [] }
const owner = (isLinked: boolean) => ({ matters: true, isLinked })
const other = (isLinked: boolean) => ({ matters: false, isLinked })

/** What a node finds that looks five times a lease. */
function lookFor(
  { readiness, clock }: { readiness: Readiness; clock: { ms: number } },
  view: Omit<ReadinessView, 'nowMs'>,
  leases: number,
) {
  let isReady = false
  for (const endMs = clock.ms + leases * LEASE_MS; clock.ms < endMs; clock.ms += LEASE_MS / 5)
    isReady = readiness.look({ ...view, nowMs: clock.ms })
  return isReady
}

it('makes a node ready that owns shards and has nobody beside it, at once', () => {
  expect(new Readiness(LEASE_MS).look({ ...alone, ownsAny: true })).toBe(true)
})

it('makes a node ready that has had a link to the owner, and been near the end of the logs, for three leases', () => {
  const node = { readiness: new Readiness(LEASE_MS), clock: { ms: 0 } }
  const well = { ...alone, others: [owner(true)] }
  expect(lookFor(node, well, 2)).toBe(false)
  expect(lookFor(node, { ...well, lagMs: 5 * LEASE_MS }, 1)).toBe(false)
  expect(lookFor(node, well, 2)).toBe(false)
  expect(lookFor(node, well, 2)).toBe(true)
})

it('does not make one ready that has no link to an owner, whoever else it reaches', () => {
  const node = { readiness: new Readiness(LEASE_MS), clock: { ms: 0 } }
  expect(lookFor(node, { ...alone, others: [owner(false), other(true)] }, 9)).toBe(false)
  expect(lookFor(node, { ...alone, others: [owner(true), other(false)] }, 9)).toBe(true)
})

it('does not make two ready that do not reach each other, where nobody owns anything', () => {
  const node = { readiness: new Readiness(LEASE_MS), clock: { ms: 0 } }
  expect(lookFor(node, { ...alone, others: [other(false)] }, 9)).toBe(false)
  expect(lookFor(node, { ...alone, others: [other(true)] }, 9)).toBe(true)
})

it('keeps one ready whose link is away for a moment, and not for longer', () => {
  const node = { readiness: new Readiness(LEASE_MS), clock: { ms: 0 } }
  const linked = { ...alone, ownsAny: true, others: [owner(true)] }
  const cut = { ...linked, others: [owner(false)] }
  expect(lookFor(node, linked, 4)).toBe(true)
  expect(lookFor(node, cut, 2)).toBe(true)
  expect(lookFor(node, linked, 1)).toBe(true)
  expect(lookFor(node, cut, 4)).toBe(false)
})
