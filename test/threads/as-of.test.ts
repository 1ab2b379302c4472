import { fc } from '../support/fast-check.js'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { verifyCheckpoint } from '../../src/proof/node/compare-checkpoint.js'
import { parseHlc, type Hlc } from '../../src/strand/hlc.js'
import { zones, type Zone } from '../../src/strand/zone.js'
import { appendNumber, codeOf, replyOf, TestShard } from '../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  replyOf(shard.ask({ kind: 'agentCreate', agent: 'a', zone: 'free', options: {} }))
})
afterEach(() => shard.remove())

/** The strand as it was: seq of its last record, zone, and the numbers of the records that are shown. */
function seen(moment: Hlc) {
  const stood = shard.ask({ kind: 'strandThen', agent: 'a', at: { moment } })
  if (stood.kind !== 'strandThen') throw new Error(JSON.stringify(stood))
  if (stood.head === undefined) return undefined
  const { seq, hash, zone } = stood.head
  const cursor = { nextSeq: 0, asOfSeq: seq }
  const page = shard.ask({ kind: 'recordQuery', agent: 'a', order: 'asc', limit: 1_000, cursor })
  if (page.kind !== 'rows') throw new Error(JSON.stringify(page))
  return { seq, hash, zone, numbers: page.rows.map((row): number => JSON.parse(String(row)).payload.n) }
}

function headNow(): { seq: number; hash: string; hlc: Hlc } {
  const body = replyOf(shard.ask({ kind: 'agentHead', agent: 'a' }))
  const hlc = parseHlc(body.timestamp_hlc)
  if (hlc === undefined) throw new Error(`Expected an HLC, got ${body.timestamp_hlc}`)
  return { seq: body.seq, hash: body.chain_head, hlc }
}

/** The key of now signs the head of any size; where only the key of then may, a rotation since leaves it unsigned. */
function expectSignedNow(size: number, key: string): void {
  const head = { agent: 'a', size, root: 'ab'.repeat(32) }
  const [now, then] = shard.run(
    { kind: 'checkpointSign', ...head, by: 'now' },
    { kind: 'checkpointSign', ...head, by: 'then' },
  )
  const note = now?.kind === 'reply' ? now.body : ''
  expect(verifyCheckpoint(note, key)).toMatchObject({ size, rootHex: head.root })
  const { retiredKeys } = shard.store.agents.find('a') ?? { retiredKeys: [] }
  const rotated = retiredKeys.some(({ lastSeq }) => size <= lastSeq)
  expect(then).toEqual(rotated ? { kind: 'done' } : now)
}

const step = fc.record({
  action: fc.constantFrom('write', 'write', 'write', 'delete', 'restore', 'zone', 'rotate'),
  /** Of the records so far, from the first one. */
  target: fc.nat({ max: 9 }),
  zone: fc.constantFrom(...zones),
  afterMs: fc.constantFrom(0, 0, 1, 1_000),
  restarts: fc.constantFrom(false, false, false, false, true),
})

it('is at every moment what a plain model of the strand was then', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
      const own = new TestShard()
      const outer = shard
      shard = own
      try {
        replyOf(own.ask({ kind: 'agentCreate', agent: 'a', zone: 'free', options: {} }))
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
          own.nowMs += afterMs
          if (restarts) await own.reopen()
          const options = {}
          if (action === 'write') hashes.push(replyOf(own.ask(appendNumber('a', hashes.length))).record_id)
          else if (action === 'rotate') {
            const asked = { kind: 'agentKeyRotate', agent: 'a', principal: 'root', options: {} } as const
            own.ask(asked)
          } else if (action === 'zone') {
            // In zone free only does a change of zone, or of anything, happen at once.
            const asked = own.ask({
              kind: 'agentZoneSet',
              agent: 'a',
              zone: next,
              principal: 'root',
              options,
            })
            if (asked.kind === 'reply' && asked.status === 200) zone = next
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
            const outcome = own.ask(command)
            if (outcome.kind === 'reply' && outcome.status === 200) {
              if (action === 'delete') deleted.add(target)
              else deleted.delete(target)
            }
          }
          note()
        }
        const { public_key: key } = replyOf(own.ask({ kind: 'agentStatus', agent: 'a' }))
        for (const { hlc, was } of moments) {
          expect(seen(hlc)).toEqual(was)
          expectSignedNow((was?.seq ?? 0) + 1, key)
        }
        const [first] = moments
        if (first !== undefined) expect(seen({ ms: first.hlc.ms - 1, counter: 0xffff })).toBeUndefined()
      } finally {
        await own.remove()
        shard = outer
      }
    }),
    { numRuns: 40 },
  )
})

it('has no place behind its end, and none for an agent that is not there', () => {
  replyOf(shard.ask(appendNumber('a', 0)))
  const at = (seq: number) => shard.ask({ kind: 'strandThen', agent: 'a', at: { seq } })
  expect(at(1)).toMatchObject({ head: { seq: 1 } })
  expect(at(2)).not.toHaveProperty('head')
  const nobody = { kind: 'strandThen', agent: 'nobody', at: { seq: 0 } } as const
  expect(codeOf(shard.ask(nobody))).toBe('agent_not_found')
  const access = { claims: { sub: 'usr_1', email: 'a@b.c', app_metadata: {}, user_metadata: {} } }
  expect(codeOf(shard.ask({ ...nobody, agent: 'a', access }))).toBe('forbidden')
})
