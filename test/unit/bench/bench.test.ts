import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { argon2Rate } from '../../../bench/ceilings/argon2.mjs'
import { syncTimes } from '../../../bench/ceilings/sync-times.mjs'
import { benchUsers, loginRequests } from '../../../bench/logins.mjs'
import { readPlan } from '../../../bench/options.mjs'
import { agentNames, recordBody, writeRequests } from '../../../bench/records.mjs'
import {
  appendResult,
  isMet,
  notMeasuredLines,
  resultOf,
  resultsFileOf,
  table,
} from '../../../bench/report.mjs'
import { sumOfMetric } from '../../../bench/server.mjs'
import { against, median, rounded } from '../../../bench/statistics.mjs'
import { rawRequests, readWrkOutput } from '../../../bench/wrk.mjs'
import { checkCounts } from '../../../bench/writers.mjs'
import { shardOf } from '../../../src/strand/placement.js'
import { shardsMax } from '../../../src/settings/threads.js'

describe('median', () => {
  it('returns the middle value of an odd count in any order', () => {
    expect(median([9, 1, 10])).toBe(9)
  })

  it('returns the mean of the two middle values of an even count', () => {
    expect(median([4, 1, 100, 2])).toBe(3)
  })

  it('throws without numbers', () => {
    expect(() => median([])).toThrow('Expected at least one number')
  })
})

describe('against', () => {
  it('returns the median of the ratios per round, not the ratio of the medians', () => {
    const rounds = [
      { value: 10, ceiling: 100 },
      { value: 40, ceiling: 80 },
      { value: 30, ceiling: 50 },
    ]
    // The ratios are 0.1, 0.5 and 0.6; the medians would give 30 / 80.
    expect(against(rounds)).toEqual({ value: 30, ceiling: 80, ratio: 0.5 })
  })
})

describe('rounded', () => {
  it('rounds small figures to three digits and large ones to integers', () => {
    expect([rounded(0.123_456), rounded(99.96), rounded(28_500.4)]).toEqual([0.123, 100, 28_500])
  })
})

describe('isMet', () => {
  const figure = { name: 'x', value: 250, unit: 'x/s', ceiling: 1_000, ratio: 0.25 }

  it('requires at least the target ratio', () => {
    expect(isMet({ ...figure, target: { ratio: 0.25 } })).toBe(true)
    expect(isMet({ ...figure, target: { ratio: 0.251 } })).toBe(false)
  })

  it('requires less than a target that is an upper bound', () => {
    expect(isMet({ ...figure, target: { below: 251 } })).toBe(true)
    expect(isMet({ ...figure, target: { below: 250 } })).toBe(false)
  })

  it('returns null without a target', () => {
    expect(isMet(figure)).toBeNull()
  })

  it('returns null for a figure that the run cannot judge', () => {
    expect(isMet({ ...figure, target: { below: 251 }, judged: false })).toBeNull()
    expect(isMet({ ...figure, target: { below: 251 }, judged: true })).toBe(true)
  })

  it('fails a ratio that was not measured', () => {
    expect(isMet({ name: 'x', value: 1, unit: 'x', target: { ratio: 0 } })).toBe(false)
  })
})

describe('results', () => {
  const directory = mkdtempSync(join(tmpdir(), 'bench-results-'))
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const writes = resultOf({
    name: 'writes',
    value: 28_500.4,
    unit: 'writes/s',
    ceiling: 119_999.6,
    ratio: 0.237_503,
    target: { ratio: 0.22 },
    also: { p50_ms: 4.2 },
  })

  it('are appended as one JSON line per run', () => {
    const file = join(directory, 'results.jsonl')
    appendResult(file, { at: 'then', scenarios: [writes] })
    appendResult(file, { at: 'later', scenarios: [] })
    const lines = readFileSync(file, 'utf8').split('\n')
    expect(lines).toHaveLength(3)
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      at: 'then',
      scenarios: [
        {
          name: 'writes',
          value: 28_500,
          unit: 'writes/s',
          ceiling: 120_000,
          ratio: 0.238,
          target: { ratio: 0.22 },
          met: true,
          p50_ms: 4.2,
        },
      ],
    })
    expect(JSON.parse(lines[1] ?? '')).toEqual({ at: 'later', scenarios: [] })
  })

  it('are shown in a table as met or missed', () => {
    const slow = resultOf({ name: 'start', value: 2_100, unit: 'ms', target: { below: 2_000 } })
    const [, first, second] = table([writes, slow]).split('\n')
    expect(first).toMatch(/^writes +28,500 writes\/s +120,000 +0\.238 +ratio >= 0\.22 +met$/)
    expect(second).toMatch(/^start +2,100 ms +< 2,000 +MISSED$/)
  })
})

describe('resultsFileOf', () => {
  it('excludes figures of other checkouts from the file of this one', () => {
    expect(resultsFileOf({}, 'usual')).toBe('usual')
    expect(resultsFileOf({ product: '../old' }, 'usual')).toBeUndefined()
    expect(resultsFileOf({ product: '../old', results: 'old.jsonl' }, 'usual')).toBe('old.jsonl')
    expect(resultsFileOf({ results: 'mine.jsonl' }, 'usual')).toBe('mine.jsonl')
  })
})

describe('notMeasuredLines', () => {
  it('prints the reason for each missing figure', () => {
    const figures = [
      { name: 'bytes', notMeasured: 'no such file' },
      { name: 'writes', notMeasured: 'others wrote' },
    ]
    expect(notMeasuredLines(figures)).toBe(
      'bytes: not measured: no such file\nwrites: not measured: others wrote\n',
    )
    expect(notMeasuredLines([])).toBe('')
  })
})

describe('sumOfMetric', () => {
  const text = `# HELP replayed_commits Commits
# TYPE replayed_commits gauge
replayed_commits{shard="0"} 3
replayed_commits{shard="1"} 4
replayed_commits_other{shard="0"} 100
free_bytes 1.5e+9
`

  it('sums all series of exactly this name', () => {
    expect(sumOfMetric(text, 'replayed_commits')).toBe(7)
    expect(sumOfMetric(text, 'free_bytes')).toBe(1_500_000_000)
  })

  it('returns undefined for an unknown metric', () => {
    expect(sumOfMetric(text, 'replayed')).toBeUndefined()
  })
})

describe('checkCounts', () => {
  it('accepts at most as many more records than answers as were in flight, and not fewer', () => {
    expect(() => checkCounts({ answered: 10, recorded: 10, inFlight: 2 })).not.toThrow()
    expect(() => checkCounts({ answered: 10, recorded: 12, inFlight: 2 })).not.toThrow()
    expect(() => checkCounts({ answered: 10, recorded: 9, inFlight: 2 })).toThrow('10 writes were answered')
    expect(() => checkCounts({ answered: 10, recorded: 13, inFlight: 2 })).toThrow('and 13 recorded')
  })
})

describe('readWrkOutput', () => {
  const output = (line: string) =>
    `Running 2s test @ http://127.0.0.1:1\n  1 threads and 64 connections\n${line}\n`

  it('reads the rate, the latencies and the failures', () => {
    const line =
      'bench-result {"requests":500,"durationUs":2000000,"p50Us":440,"p99Us":3900,"maxUs":5200,"status":2,"broken":1}'
    expect(readWrkOutput(output(line))).toEqual({
      requests: 500,
      perSecond: 250,
      p50Ms: 0.44,
      p99Ms: 3.9,
      maxMs: 5.2,
      failed: 3,
    })
  })

  it('throws if wrk did not finish', () => {
    expect(() => readWrkOutput(output('unable to connect'))).toThrow('unable to connect')
  })
})

describe('agentNames', () => {
  it('returns unique names that alternate between the shards', () => {
    const shards = Math.min(availableParallelism(), shardsMax)
    const names = agentNames('a', 4 * shards + 1)
    expect(new Set(names).size).toBe(4 * shards + 1)
    expect(names.map((name) => shardOf(name, shards))).toEqual(names.map((_name, index) => index % shards))
    expect(names.every((name) => /^a-\d{4}$/.test(name))).toBe(true)
  })
})

describe('rawRequests', () => {
  it('prefixes each request with its length in bytes', () => {
    const requests = writeRequests(['a-0000', 'a-0001'], { count: 3, headers: { authorization: 'Bearer x' } })
    const text = rawRequests(requests)
    const bodies = []
    let at = 0
    while (at < text.length) {
      const length = Number.parseInt(text.slice(at), 10)
      const from = at + String(length).length + 1
      const [head, body] = text.slice(from, from + length).split('\r\n\r\n')
      expect(head).toContain(`content-length: ${body?.length}`)
      bodies.push(JSON.parse(body ?? ''))
      at = from + length + 1
    }
    expect(bodies).toEqual([0, 1, 2].map((number) => ({ data: recordBody(number) })))
    expect(requests.map(({ path }) => path)).toEqual(
      [0, 1, 0].map((agent) => `/v1/agents/a-000${agent}/records`),
    )
  })

  it('sends a GET without a body', () => {
    expect(rawRequests([{ method: 'GET', path: '/x', headers: {} }])).toBe(
      '36 GET /x HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n',
    )
  })
})

describe('readPlan', () => {
  it('measures five rounds, or one with --quick', () => {
    expect(readPlan(['--generator', 'autocannon'])).toMatchObject({
      quick: false,
      rounds: 5,
      idleAgents: 100_000,
    })
    expect(readPlan(['--quick', '--only', 'get', '--generator', 'autocannon'])).toMatchObject({
      quick: true,
      rounds: 1,
      only: ['get'],
      generator: 'autocannon',
    })
  })

  it('accepts the sizes of the long scenarios', () => {
    expect(readPlan(['--generator', 'autocannon'])).toMatchObject({
      manyAgents: 1_000_000,
      manyRecords: 1_000_000,
      flatAgents: 100_000,
      flatRecords: 10_000_000,
    })
    const args = ['--agents', '5000', '--records', '70000', '--generator', 'autocannon']
    expect(readPlan(args)).toMatchObject({ manyAgents: 5_000, flatAgents: 5_000, manyRecords: 70_000 })
    expect(() => readPlan(['--agents', '1e6'])).toThrow('Expected a number from 1000')
  })

  it('accepts another checkout and another results file', () => {
    const args = ['--product', '../old', '--results', 'old.jsonl', '--generator', 'autocannon']
    expect(readPlan(args)).toMatchObject({ product: '../old', results: 'old.jsonl' })
    expect(readPlan(['--generator', 'autocannon'])).toMatchObject({ product: undefined, results: undefined })
  })

  it('refuses an unknown generator', () => {
    expect(() => readPlan(['--generator', 'ab'])).toThrow('Expected --generator wrk or autocannon')
  })
})

describe('recordBody', () => {
  it('has about 230 bytes and differs each time', () => {
    const sizes = [1, 50, 99_999].map((number) => JSON.stringify(recordBody(number)).length)
    for (const size of sizes) expect(Math.abs(size - 230)).toBeLessThan(10)
    expect(recordBody(1)).not.toEqual(recordBody(2))
  })
})

describe('loginRequests', () => {
  it('signs in a different user with each request and sends no other credential', () => {
    const users = benchUsers(3)
    const requests = loginRequests(users)
    expect(requests.map(({ body }) => JSON.parse(body ?? ''))).toEqual(users)
    expect(new Set(users.map(({ email }) => email)).size).toBe(3)
    for (const { headers } of requests) expect(headers).toEqual({ 'content-type': 'application/json' })
  })
})

describe('argon2Rate', () => {
  it('counts passwords per second until each thread has hashed at least one', async () => {
    const rate = await argon2Rate({ threads: 2, durationMs: 1 })
    expect(rate).toBeGreaterThan(0)
    expect(Number.isFinite(rate)).toBe(true)
  })
})

describe('syncTimes', () => {
  it('measures synced writes and leaves no file behind', () => {
    const directory = mkdtempSync(join(tmpdir(), 'bench-sync-'))
    const { p50Ms, p99Ms } = syncTimes({ directory, durationMs: 1 })
    const left = readdirSync(directory)
    rmSync(directory, { recursive: true })
    expect(p50Ms).toBeGreaterThan(0)
    expect(p99Ms).toBeGreaterThanOrEqual(p50Ms)
    expect(left).toEqual([])
  })
})
