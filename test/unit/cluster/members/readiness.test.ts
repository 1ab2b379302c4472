import { expect, it } from 'vitest'
import { Readiness, type ReadinessView } from '../../../../src/cluster/members/readiness.js'

const LEASE_MS = 1_000
const alone: ReadinessView = { nowMs: 0, ownsAny: false, isFull: false, lagMs: 0, others: [] }
const owner = (isLinked: boolean) => ({ matters: true, isLinked })
const other = (isLinked: boolean) => ({ matters: false, isLinked })

/** Lets a node check its readiness five times a lease. @returns the last result */
function observe(
  { readiness, clock }: { readiness: Readiness; clock: { ms: number } },
  view: Omit<ReadinessView, 'nowMs'>,
  leases: number,
) {
  let isReady = false
  for (const endMs = clock.ms + leases * LEASE_MS; clock.ms < endMs; clock.ms += LEASE_MS / 5)
    isReady = readiness.look({ ...view, nowMs: clock.ms })
  return isReady
}

it('makes a node ready immediately if it owns shards and is alone', () => {
  expect(new Readiness(LEASE_MS).look({ ...alone, ownsAny: true })).toBe(true)
})

it('makes a node ready after three leases with a link to the owner and near the end of the logs', () => {
  const node = { readiness: new Readiness(LEASE_MS), clock: { ms: 0 } }
  const healthy = { ...alone, others: [owner(true)] }
  expect(observe(node, healthy, 2)).toBe(false)
  expect(observe(node, { ...healthy, lagMs: 5 * LEASE_MS }, 1)).toBe(false)
  expect(observe(node, healthy, 2)).toBe(false)
  expect(observe(node, healthy, 2)).toBe(true)
})

it('makes a node with a full disk unready immediately, and ready again after three leases with space', () => {
  const node = { readiness: new Readiness(LEASE_MS), clock: { ms: 0 } }
  const healthy = { ...alone, ownsAny: true, others: [owner(true)] }
  expect(observe(node, healthy, 4)).toBe(true)
  expect(node.readiness.look({ ...healthy, nowMs: node.clock.ms, isFull: true })).toBe(false)
  expect(observe(node, healthy, 2)).toBe(false)
  expect(observe(node, healthy, 2)).toBe(true)
})

it('does not make a node ready without a link to an owner, whatever other links it has', () => {
  const node = { readiness: new Readiness(LEASE_MS), clock: { ms: 0 } }
  expect(observe(node, { ...alone, others: [owner(false), other(true)] }, 9)).toBe(false)
  expect(observe(node, { ...alone, others: [owner(true), other(false)] }, 9)).toBe(true)
})

it('does not make two nodes ready that have no link to each other while no shard has an owner', () => {
  const node = { readiness: new Readiness(LEASE_MS), clock: { ms: 0 } }
  expect(observe(node, { ...alone, others: [other(false)] }, 9)).toBe(false)
  expect(observe(node, { ...alone, others: [other(true)] }, 9)).toBe(true)
})

it('keeps a node ready during a short interruption of its link, and not during a long one', () => {
  const node = { readiness: new Readiness(LEASE_MS), clock: { ms: 0 } }
  const linked = { ...alone, ownsAny: true, others: [owner(true)] }
  const cut = { ...linked, others: [owner(false)] }
  expect(observe(node, linked, 4)).toBe(true)
  expect(observe(node, cut, 2)).toBe(true)
  expect(observe(node, linked, 1)).toBe(true)
  expect(observe(node, cut, 4)).toBe(false)
})
