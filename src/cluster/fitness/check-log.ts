import { randomBytes } from 'node:crypto'
import { limits } from '../../base/limits/limits.js'
import { failureOf } from '../database/trouble.js'
import {
  brokenChain,
  type CheckBench,
  type DatabaseCheck,
  fine,
  segmentBehind,
  wrong,
} from './check-bench.js'
import type { SegmentRegister, StoredSegment } from '../database/register.js'

/* What a log of segments asks of a database: one winner for each number, whatever happens to connections. */

/** Many connections insert one key: exactly one may get through, as a row of its own and as one behind another. */
export const racingCheck: DatabaseCheck = {
  subject: 'races',
  async run(bench) {
    const { clusterCheckConnections: connections, clusterCheckSegments: segments } = limits
    const doubled = await raceForKeys(bench)
    if (doubled !== undefined) return wrong(doubled)
    const registers = Array.from({ length: connections }, () => bench.register())
    const base = await bench.begin()
    let before = base
    for (let number = 1; number <= segments; number++) {
      const winner = await raceBehind(before, registers)
      if (typeof winner === 'string') return wrong(winner)
      before = winner
    }
    const broken = brokenChain(await bench.rowsOf(base.shard))
    if (broken !== undefined) return wrong(`After races the log is no chain: ${broken}`)
    return fine(
      `Of ${connections} connections exactly one won each of ${segments} segments, and the log is one chain`,
    )
  },
}

async function raceBehind(
  before: StoredSegment,
  registers: readonly SegmentRegister[],
): Promise<StoredSegment | string> {
  const rivals = registers.map((_register, rival) => segmentBehind(before, `by connection ${rival}`))
  const outcomes = await Promise.all(
    registers.map((register, rival) => register.append(before, rivals[rival] ?? before)),
  )
  const winners = rivals.filter((_rival, nth) => outcomes[nth]?.kind === 'durable')
  const [winner] = winners
  const others = outcomes.filter(({ kind }) => kind !== 'durable' && kind !== 'fenced')
  if (winner === undefined || winners.length > 1)
    return `${winners.length} of ${registers.length} connections were told that segment ${before.number + 1} is theirs: expected 1`
  if (others.length > 0)
    return `An append in a race was ${others[0]?.kind}: expected it to win or to be refused`
  return winner
}

/** Inserts of one row with its values, which some engines take by a way of their own. @returns what is wrong */
async function raceForKeys(bench: CheckBench): Promise<string | undefined> {
  const { clusterCheckConnections: connections, clusterCheckSegments: keys } = limits
  const sessions = await Promise.all(Array.from({ length: connections }, () => bench.session()))
  const reader = bench.register()
  for (let key = 0; key < keys; key++) {
    const shard = bench.newShard()
    const inserted = await Promise.all(
      sessions.map(async (session, rival) => {
        const row = [shard, 0, Buffer.alloc(32, rival), 'base', Buffer.alloc(0), null]
        try {
          return (await session.write(bench.statements.begin, row)).rows
        } catch (error) {
          if (failureOf(error) === 'taken') return 0
          throw error
        }
      }),
    )
    const winners = inserted.filter((rows) => rows === 1).length
    if (winners !== 1) return `${winners} of ${connections} inserts of one key succeeded: expected 1`
    const rows = await reader.read(shard, { segment: -1, part: 0 }, { rows: connections })
    if (rows.length !== 1) return `${rows.length} rows have one primary key`
  }
  return undefined
}

/** Connections are cut while they append, at moments from before the statement to after its answer; then it is sent again. */
export const cutCheck: DatabaseCheck = {
  subject: 'cut connections',
  async run(bench) {
    const base = await bench.begin()
    const register = bench.register()
    let before = segmentBehind(base, 'to connect')
    await register.append(base, before)
    const measured = segmentBehind(before, 'to measure')
    const startedMs = performance.now()
    await register.append(before, measured)
    const appendMs = performance.now() - startedMs
    before = measured
    let cutShort = 0
    for (let round = 0; round < limits.clusterCheckCuts; round++) {
      const next = segmentBehind(before, `cut ${round}`)
      const session = await bench.session()
      const { append } = bench.statements
      const [part] = next.parts
      const row = [next.shard, before.number, before.hash, next.hash, next.header, part?.blocks ?? null, null]
      const timer = setTimeout(() => session.drop(), (1.5 * appendMs * round) / limits.clusterCheckCuts)
      try {
        await session.write(append, row)
      } catch {
        // That is what is checked: whether it was done shows now.
        cutShort += 1
      }
      clearTimeout(timer)
      session.drop()
      const outcome = await register.append(before, next)
      if (outcome.kind !== 'durable')
        return wrong(
          `An append that was sent again after its connection was cut was ${outcome.kind}: expected it to be durable`,
        )
      const there = await register.read(next.shard, { segment: before.number, part: 0 }, { rows: 10 })
      if (there.length !== 1)
        return wrong(
          `An append that was sent again after its connection was cut is there ${there.length} times`,
        )
      before = next
    }
    const broken = brokenChain(await bench.rowsOf(base.shard))
    if (broken !== undefined) return wrong(`After cut connections the log is no chain: ${broken}`)
    return fine(
      `${cutShort} of ${limits.clusterCheckCuts} appends were cut short, and each is there once after it was sent again`,
    )
  },
}

/** A segment behind none, or behind one of another history, is not taken. */
export const chainCheck: DatabaseCheck = {
  subject: 'chain',
  async run(bench) {
    const base = await bench.begin()
    const register = bench.register()
    const first = segmentBehind(base, 'one history')
    const other = segmentBehind(base, 'another history')
    if ((await register.append(base, first)).kind !== 'durable')
      return wrong('An append behind the end was refused')
    for (const before of [other, segmentBehind(first, 'never written')]) {
      const { kind } = await register.append(before, segmentBehind(before, 'behind it'))
      if (kind !== 'lost')
        return wrong(`A segment behind one that is not there was ${kind}: expected it to be refused`)
    }
    return fine('A segment is taken behind the one that it names, and nowhere else')
  },
}

/** What is written comes back, byte for byte. */
export const bytesCheck: DatabaseCheck = {
  subject: 'bytes',
  async run(bench) {
    const base = await bench.begin()
    const all = Buffer.from(Array.from({ length: 256 }, (_none, byte) => byte))
    const parts = [
      { blocks: randomBytes(limits.clusterPartBytes), state: randomBytes(limits.clusterPartBytes) },
      { blocks: all, state: Buffer.alloc(0) },
      { blocks: Buffer.alloc(0), state: null },
    ]
    const segment = { ...segmentBehind(base, 'Zürich 東京 🗂 \\x00 %s $1\nsecond line'), parts }
    const { kind } = await bench.register().append(base, segment)
    if (kind !== 'durable') return wrong(`A segment of ${parts.length} parts, two of 1 MiB, was ${kind}`)
    const [, ...rows] = await bench.rowsOf(base.shard)
    if (rows.length !== parts.length) return wrong(`${rows.length} of ${parts.length} parts came back`)
    const isSame = rows.every(({ blocks, state }, nth) => {
      const written = parts[nth]
      const sameState = state === null ? written?.state === null : written?.state?.equals(state)
      return written?.blocks.equals(blocks) === true && sameState === true
    })
    if (!isSame || rows[0]?.header !== segment.header || !rows[0].hash.equals(segment.hash))
      return wrong('What was read is not what was written')
    return fine('Two times 1 MiB in a row, every byte and texts of all kinds come back as they were written')
  },
}
