import { randomBytes } from 'node:crypto'
import { limits } from '../../base/limits/limits.js'
import { failureOf } from '../database/database-errors.js'
import {
  findChainFault,
  type CheckBench,
  type DatabaseCheck,
  pass,
  segmentAfter,
  fail,
} from './check-bench.js'
import type { SegmentRegister, StoredSegment } from '../database/register.js'

/* Checks of a segment log: every number has exactly one winner, whatever happens to connections. */

/**
 * Many connections insert the same key, as a single row and after a segment: exactly one insert may succeed.
 */
export const racingCheck: DatabaseCheck = {
  subject: 'races',
  async run(bench) {
    const { clusterCheckConnections: connections, clusterCheckSegments: segments } = limits
    const doubled = await raceForKeys(bench)
    if (doubled !== undefined) return fail(doubled)
    const registers = Array.from({ length: connections }, () => bench.register())
    const base = await bench.begin()
    let before = base
    for (let number = 1; number <= segments; number++) {
      const winner = await raceBehind(before, registers)
      if (typeof winner === 'string') return fail(winner)
      before = winner
    }
    const broken = findChainFault(await bench.rowsOf(base.shard))
    if (broken !== undefined) return fail(`After races the log is not a chain: ${broken}`)
    return pass(
      `Exactly one of ${connections} connections won each of ${segments} segments, and the log is one chain`,
    )
  },
}

async function raceBehind(
  before: StoredSegment,
  registers: readonly SegmentRegister[],
): Promise<StoredSegment | string> {
  const rivals = registers.map((_register, rival) => segmentAfter(before, `by connection ${rival}`))
  const outcomes = await Promise.all(
    registers.map((register, rival) => register.append(before, rivals[rival] ?? before)),
  )
  const winners = rivals.filter((_rival, nth) => outcomes[nth]?.kind === 'durable')
  const [winner] = winners
  const others = outcomes.filter(({ kind }) => kind !== 'durable' && kind !== 'fenced')
  if (winner === undefined || winners.length > 1)
    return `${winners.length} of ${registers.length} connections won segment ${before.number + 1}: expected 1`
  if (others.length > 0) return `An append in a race was ${others[0]?.kind}: expected durable or fenced`
  return winner
}

/**
 * Inserts of single rows with VALUES, which some engines execute on a separate path.
 * @returns the fault, if any
 */
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

/**
 * Cuts connections during appends, from before the statement to after its answer, and repeats each append.
 */
export const cutCheck: DatabaseCheck = {
  subject: 'cut connections',
  async run(bench) {
    const base = await bench.begin()
    const register = bench.register()
    let before = segmentAfter(base, 'to connect')
    await register.append(base, before)
    const measured = segmentAfter(before, 'to measure')
    const startedMs = performance.now()
    await register.append(before, measured)
    const appendMs = performance.now() - startedMs
    before = measured
    let cutShort = 0
    for (let round = 0; round < limits.clusterCheckCuts; round++) {
      const next = segmentAfter(before, `cut ${round}`)
      const session = await bench.session()
      const { append } = bench.statements
      const [part] = next.parts
      const row = [next.shard, before.number, before.hash, next.hash, next.header, part?.blocks ?? null, null]
      const timer = setTimeout(() => session.drop(), (1.5 * appendMs * round) / limits.clusterCheckCuts)
      try {
        await session.write(append, row)
      } catch {
        // Expected. The repeated append below finds out whether the statement took effect.
        cutShort += 1
      }
      clearTimeout(timer)
      session.drop()
      const outcome = await register.append(before, next)
      if (outcome.kind !== 'durable')
        return fail(`An append repeated after a cut connection was ${outcome.kind}: expected durable`)
      const there = await register.read(next.shard, { segment: before.number, part: 0 }, { rows: 10 })
      if (there.length !== 1)
        return fail(`An append repeated after a cut connection was stored ${there.length} times`)
      before = next
    }
    const broken = findChainFault(await bench.rowsOf(base.shard))
    if (broken !== undefined) return fail(`After cut connections the log is not a chain: ${broken}`)
    return pass(
      `${cutShort} of ${limits.clusterCheckCuts} appends were interrupted, and each is stored once after it was repeated`,
    )
  },
}

/** A segment after a missing segment, or after one of another history, is refused. */
export const chainCheck: DatabaseCheck = {
  subject: 'chain',
  async run(bench) {
    const base = await bench.begin()
    const register = bench.register()
    const first = segmentAfter(base, 'one history')
    const other = segmentAfter(base, 'another history')
    if ((await register.append(base, first)).kind !== 'durable')
      return fail('An append at the end of the log was refused')
    for (const before of [other, segmentAfter(first, 'never written')]) {
      const { kind } = await register.append(before, segmentAfter(before, 'behind it'))
      if (kind !== 'lost') return fail(`A segment after a missing one was ${kind}: expected lost`)
    }
    return pass('A segment is accepted only after the segment that it names')
  },
}

/** Written bytes are read back unchanged. */
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
    const segment = { ...segmentAfter(base, 'Zürich 東京 🗂 \\x00 %s $1\nsecond line'), parts }
    const { kind } = await bench.register().append(base, segment)
    if (kind !== 'durable')
      return fail(
        `A segment of ${parts.length} parts, with two values of 1 MiB, was ${kind}: expected durable`,
      )
    const [, ...rows] = await bench.rowsOf(base.shard)
    if (rows.length !== parts.length) return fail(`${rows.length} of ${parts.length} parts were read back`)
    const isSame = rows.every(({ blocks, state }, nth) => {
      const written = parts[nth]
      const sameState = state === null ? written?.state === null : written?.state?.equals(state)
      return written?.blocks.equals(blocks) === true && sameState === true
    })
    if (!isSame || rows[0]?.header !== segment.header || !rows[0].hash.equals(segment.hash))
      return fail('The bytes read differ from the bytes written')
    return pass(
      'Two values of 1 MiB in a row, every byte value and all kinds of text are read back unchanged',
    )
  },
}
