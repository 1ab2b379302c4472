import { fc } from '../support/fast-check.js'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { verifyCheckpoint } from '../../src/proof/node/compare-checkpoint.js'
import { parseHlc, type Hlc } from '../../src/strand/hlc.js'
import { zones, type Zone } from '../../src/strand/zone.js'
import { appendNumber, codeOf, replyOf, rowsOf, TestShard } from '../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  replyOf(shard.ask({ kind: 'agentCreate', agent: 'a', zone: 'free', options: {} }))
})
afterEach(() => shard.remove())

/**
 * The strand as of a moment: the seq of its last record, the zone, and the numbers of the visible records.
 */
function seen(moment: Hlc) {
  const outcome = shard.ask({ kind: 'strandThen', agent: 'a', at: { moment } })
  if (outcome.kind !== 'strandThen') throw new Error(JSON.stringify(outcome))
  if (outcome.head === undefined) return undefined
  const { seq, hash, zone } = outcome.head
  const cursor = { nextSeq: 0, asOfSeq: seq }
  const page = shard.ask({ kind: 'recordQuery', agent: 'a', order: 'asc', limit: 1_000, cursor })
  return { seq, hash, zone, numbers: rowsOf(page).map((row): number => row.payload.n) }
}

function headNow(): { seq: number; hash: string; hlc: Hlc } {
  const body = replyOf(shard.ask({ kind: 'agentHead', agent: 'a' }))
  const hlc = parseHlc(body.timestamp_hlc)
  if (hlc === undefined) throw new Error(`Expected an HLC, got ${body.timestamp_hlc}`)
  return { seq: body.seq, hash: body.chain_head, hlc }
}

/**
 * The current key signs the head of any size; if only the key of that time may sign, a later rotation leaves
 * it unsigned.
 */
function expectSignedNow(size: number, key: string): void {
  const head = { agent: 'a', size, root: 'ab'.repeat(32) }
  const [byNow, byThen] = shard.run(
    { kind: 'checkpointSign', ...head, by: 'now' },
    { kind: 'checkpointSign', ...head, by: 'then' },
  )
  const note = byNow?.kind === 'reply' ? byNow.body : ''
  expect(verifyCheckpoint(note, key)).toMatchObject({ size, rootHex: head.root })
  const { retiredKeys } = shard.store.agents.find('a') ?? { retiredKeys: [] }
  const rotated = retiredKeys.some(({ lastSeq }) => size <= lastSeq)
  expect(byThen).toEqual(rotated ? { kind: 'done' } : byNow)
}

const step = fc.record({
  action: fc.constantFrom('write', 'write', 'write', 'delete', 'restore', 'zone', 'rotate'),
  /** The index of a record. */
  target: fc.nat({ max: 9 }),
  zone: fc.constantFrom(...zones),
  afterMs: fc.constantFrom(0, 0, 1, 1_000),
  restarts: fc.constantFrom(false, false, false, false, true),
})

it('returns at every moment the state that a simple model of the strand had', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
      const inner = new TestShard()
      const outer = shard
      shard = inner
      try {
        replyOf(inner.ask({ kind: 'agentCreate', agent: 'a', zone: 'free', options: {} }))
        const hashes: string[] = []
        const deleted = new Set<number>()
        let zone: Zone = 'free'
        const moments: { hlc: Hlc; was: ReturnType<typeof seen> }[] = []
        const note = () => {
          const { hlc, seq, hash } = headNow()
          const numbers = hashes.flatMap((_hash, n) => (deleted.has(n) ? [] : [n]))
          moments.push({ hlc, was: { seq, hash, zone, numbers } })
        }
        note()
        for (const { action, target, zone: next, afterMs, restarts } of steps) {
          inner.nowMs += afterMs
          if (restarts) await inner.reopen()
          const options = {}
          if (action === 'write') hashes.push(replyOf(inner.ask(appendNumber('a', hashes.length))).record_id)
          else if (action === 'rotate') {
            inner.ask({ kind: 'agentKeyRotate', agent: 'a', principal: 'root', options: {} })
          } else if (action === 'zone') {
            // Changes happen immediately only in zone free.
            const outcome = inner.ask({
              kind: 'agentZoneSet',
              agent: 'a',
              zone: next,
              principal: 'root',
              options,
            })
            if (outcome.kind === 'reply' && outcome.status === 200) zone = next
          } else {
            const hash = hashes[target]
            if (hash === undefined) continue
            const command = {
              kind: 'recordMutate',
              agent: 'a',
              action,
              hash,
              principal: 'root',
              options,
            } as const
            const outcome = inner.ask(command)
            if (outcome.kind === 'reply' && outcome.status === 200) {
              if (action === 'delete') deleted.add(target)
              else deleted.delete(target)
            }
          }
          note()
        }
        const { public_key: key } = replyOf(inner.ask({ kind: 'agentStatus', agent: 'a' }))
        for (const { hlc, was } of moments) {
          expect(seen(hlc)).toEqual(was)
          expectSignedNow((was?.seq ?? 0) + 1, key)
        }
        const [first] = moments
        if (first !== undefined) expect(seen({ ms: first.hlc.ms - 1, counter: 0xffff })).toBeUndefined()
      } finally {
        await inner.remove()
        shard = outer
      }
    }),
    { numRuns: 40 },
  )
})

it('has no head after the end of a strand, and returns 404 for an agent that does not exist', () => {
  replyOf(shard.ask(appendNumber('a', 0)))
  const at = (seq: number) => shard.ask({ kind: 'strandThen', agent: 'a', at: { seq } })
  expect(at(1)).toMatchObject({ head: { seq: 1 } })
  expect(at(2)).not.toHaveProperty('head')
  const missing = { kind: 'strandThen', agent: 'missing', at: { seq: 0 } } as const
  expect(codeOf(shard.ask(missing))).toBe('agent_not_found')
  const access = { claims: { sub: 'usr_1', email: 'a@b.c', app_metadata: {}, user_metadata: {} } }
  expect(codeOf(shard.ask({ ...missing, agent: 'a', access }))).toBe('forbidden')
})
