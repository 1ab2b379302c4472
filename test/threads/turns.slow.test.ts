import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Command, Outcome } from '../../src/protocol/messages.js'
import { compareHlc, zeroHlc } from '../../src/strand/hlc.js'
import { blocksAfter, recordsFrom } from '../../workers/store/tables/records.js'
import { appendNumber, codeOf, keyed, TestShard } from '../support/shard/shard.js'

/*
 * A shard carries out a long write in turns, with other commands between them. Atomicity and the order of the
 * log are preserved.
 */

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  // Each reading advances the clock by a millisecond, so that the number of turns does not depend on the
  // processor.
  let readings = 0
  shard.steadyClock = () => readings++
  shard.run(appendNumber('a', -1))
})
afterEach(() => shard.remove())

const LINES = 3_000
const LONG = 0

const chunk = (lines: string, more: Partial<Extract<Command, { kind: 'ingestChunk' }>> = {}): Command => ({
  kind: 'ingestChunk',
  agent: 'a',
  chunk: Buffer.from(lines),
  firstLine: 1,
  mode: 'reject',
  options: {},
  ...more,
})
const numbered = (count: number) => Array.from({ length: count }, (_none, n) => `{"n":${n}}\n`).join('')

/**
 * Carries out a long command with a short write in each turn.
 * @returns its outcome and the number of earlier outcomes
 */
function crowded(command: Command, beside: (n: number) => Command): { outcome: Outcome; overtaking: number } {
  let n = 1
  shard.frames.length = 0
  let busy = shard.turn([[LONG, command]])
  const outcomes = () => shard.frames.flatMap((frame) => frame.outcomes)
  const isLongAnswered = () => outcomes().some(([id]) => id === LONG)
  while (busy && !isLongAnswered()) {
    busy = shard.turn([[n, beside(n)]])
    n++
  }
  while (busy) busy = shard.turn()
  const all = outcomes()
  const position = all.findIndex(([id]) => id === LONG)
  const outcome = all[position]?.[1]
  if (outcome === undefined) throw new Error('Expected an outcome of the long command')
  return { outcome, overtaking: position }
}

/** The numbers of an agent's records in order; checks the strand and the order of the shard's log. */
function numbersOf(agent: string): number[] {
  const { no } = shard.store.agents.find(agent) ?? { no: -1 }
  const records = [...recordsFrom(shard.environment, no, { fromSeq: 1, order: 'asc' })]
  for (const [index, record] of records.entries()) {
    expect(record.seq).toBe(index + 1)
    if (index > 0) expect(record.prev).toBe(records[index - 1]?.hash)
  }
  let last = zeroHlc
  for (const { hlc } of blocksAfter(shard.environment, zeroHlc)) {
    expect(compareHlc(last, hlc)).toBeLessThan(0)
    last = hlc
  }
  return records.map(({ body }) => JSON.parse(Buffer.from(body).toString()).n)
}

const upTo = (count: number) => Array.from({ length: count }, (_none, n) => n)

describe('lines that are written all or none', () => {
  it.each([
    ['another agent', 'b'],
    ['the same agent', 'a'],
  ])('are written together while %s is written to', (_which, name) => {
    const { outcome, overtaking } = crowded(chunk(numbered(LINES)), (n) => appendNumber(name, -1 - n))
    expect(outcome).toMatchObject({ kind: 'ingested', accepted: LINES, rejected: 0 })
    expect(overtaking).toBeGreaterThan(1)
    const numbers = numbersOf('a')
    const from = numbers.indexOf(0)
    expect(numbers.slice(from, from + LINES)).toEqual(upTo(LINES))
  })

  it('delay writes to the same agents once they were overtaken', () => {
    const { overtaking } = crowded(chunk(numbered(LINES)), (n) => appendNumber('a', -1 - n))
    const { overtaking: others } = crowded(chunk(numbered(LINES)), (n) => appendNumber('b', n))
    expect(overtaking).toBeLessThan(others)
    expect(numbersOf('a').filter((n) => n >= 0)).toEqual([...upTo(LINES), ...upTo(LINES)])
  })

  it('are not written if one of them is invalid', () => {
    const { outcome } = crowded(chunk(`${numbered(LINES)}bad`), (n) => appendNumber('b', n))
    expect(outcome).toMatchObject({ kind: 'ingested', accepted: LINES, rejected: 1 })
    expect(numbersOf('a')).toEqual([-1])
  })

  it('create their agents together with the lines', () => {
    const lines = upTo(2_000).map((n) => `{"agent":"new-${n % 20}","data":{"n":${n}}}\n`)
    const numbers = { agent: '', lineNumbers: lines.map((_line, index) => index + 1) }
    const { outcome } = crowded(chunk(lines.join(''), numbers), (n) => appendNumber('b', n))
    expect(outcome).toMatchObject({ kind: 'ingested', accepted: 2_000 })
    for (const k of upTo(20)) expect(numbersOf(`new-${k}`)).toEqual(upTo(100).map((n) => n * 20 + k))
  })

  it('are written after the records of an agent that another write has created since', () => {
    const { outcome } = crowded(chunk(numbered(LINES), { agent: 'late' }), (n) => appendNumber('late', -n))
    expect(outcome).toMatchObject({ kind: 'ingested', accepted: LINES })
    expect(numbersOf('late').filter((n) => n >= 0)).toEqual(upTo(LINES))
  })
})

describe('a long write under an Idempotency-Key', () => {
  it('is refused if its key was used for another write since it started', () => {
    const options = keyed('one')
    const long = chunk(numbered(LINES), { mode: 'skip', options })
    const { outcome } = crowded(long, (n) => appendNumber('a', -1 - n, n === 1 ? options : {}))
    expect(codeOf(outcome)).toBe('idempotency_key_reused')
    expect(numbersOf('a').every((n) => n < 0)).toBe(true)
  })

  it('is written once', () => {
    const long = chunk(numbered(LINES), { mode: 'skip', options: keyed('two') })
    const [first, again] = shard.run(long, long)
    expect(first).toMatchObject({ accepted: LINES })
    expect(again).toMatchObject({ accepted: LINES, replayed: true })
    expect(numbersOf('a')).toEqual([-1, ...upTo(LINES)])
  })
})

it('writes the chunks of an upload in order, however long they are', () => {
  const many = upTo(6).map((k) => chunk(`{"n":${k}}\n`.repeat(k % 2 === 0 ? 1_500 : 1), { mode: 'skip' }))
  const outcomes = shard.run(...many)
  expect(outcomes.every(({ kind }) => kind === 'ingested')).toBe(true)
  const numbers = numbersOf('a').slice(1)
  expect(numbers).toEqual(numbers.toSorted((left, right) => left - right))
})
