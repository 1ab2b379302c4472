import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { withCampaigns } from '../../../scripts/campaign/document.mjs'
import { parts } from '../../../scripts/campaign/parts.mjs'
import { failuresOf } from '../../../scripts/campaign/pass.mjs'

const markers = '<!-- made from docs/campaigns.jsonl -->\nold\n<!-- end: campaigns -->'
const run = {
  commit: 'abc1234',
  part: 'crash',
  at: '2026-03-01T12:00:00.000Z',
  seed: 7,
  minutes: 2.5,
  passes: 1,
  numbers: { kills: 60, logLosses: 1_200 },
  failures: [] as object[],
}

describe('a part of a campaign', () => {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })

  it('exists for every file of the campaign tier', () => {
    const named = Object.values(parts).flatMap((part) => [...part.files, ...(part.once ?? [])])
    const tier = files.filter((path) => path.endsWith('.campaign.test.ts'))
    expect(tier.length).toBeGreaterThan(20)
    expect(tier.filter((path) => !named.some((prefix) => path.startsWith(prefix)))).toEqual([])
  })

  it.each(Object.entries(parts))('has matching test files: %s', (_name, part) => {
    for (const prefix of [...part.files, ...(part.once ?? [])])
      expect(
        files.some((path) => path.startsWith(prefix) && path.endsWith('.test.ts')),
        prefix,
      ).toBe(true)
  })

  it.each(Object.values(parts))(
    'ends at a number that its tests count: $files',
    ({ files: ownFiles, until }) => {
      const text = files
        .filter((path) => ownFiles.some((prefix) => path.startsWith(prefix)))
        .map((path) => readFileSync(`test/${path}`, 'utf8'))
        .join('\n')
      for (const name of Object.keys(until).filter((key) => key !== 'passes'))
        expect(text).toMatch(new RegExp(`count\\(\\{[^}]*\\b${name}\\b`))
    },
  )
})

describe('the list of campaigns', () => {
  it('shows the longest and the newest run of each part', () => {
    const longest = { ...run, numbers: { kills: 500 } }
    const failed = { ...run, failures: [{}], commit: 'def5678' }
    const page = withCampaigns(`# A\n\n${markers}\n`, [longest, failed])
    const text = page.replaceAll('\n  ', ' ')
    expect(text).toContain(
      'Longest run: 500 kills: no failure (2026-03-01, commit abc1234, seed 7, 2.5 min).',
    )
    expect(text).toContain(
      'Newest run: 60 kills, 1,200 log losses: **1 failure** (2026-03-01, commit def5678',
    )
    expect(page).not.toContain('old')
    expect(withCampaigns(page, [longest, failed])).toBe(page)
  })

  it('names the run that took longer if both reached the same number', () => {
    const runs = [run, { ...run, minutes: 9, seed: 8 }, { ...run, seed: 9 }]
    const text = withCampaigns(markers, runs).replaceAll('\n  ', ' ')
    expect(text).toMatch(/Longest run: .* seed 8, 9 min\)\. Newest run: .* seed 9,/)
  })

  it('throws if the page has no markers', () => {
    expect(() => withCampaigns('# A\n', [run])).toThrow('lacks the markers')
  })
})

describe('a pass', () => {
  it('counts each failed test and each file that did not load', () => {
    const failed = { status: 'failed', fullName: 'loses nothing' }
    const testResults = [
      {
        name: `${process.cwd()}/test/a.test.ts`,
        status: 'failed',
        assertionResults: [failed, { status: 'passed' }],
      },
      {
        name: `${process.cwd()}/test/b.test.ts`,
        status: 'failed',
        message: 'Hook timed out',
        assertionResults: [],
      },
    ]
    expect(failuresOf({ testResults }, { files: ['a', 'b'], code: 1 })).toEqual([
      { file: 'test/a.test.ts', test: 'loses nothing' },
      { file: 'test/b.test.ts', test: 'Hook timed out' },
    ])
  })

  it('counts an error outside of the tests, which only the exit code shows', () => {
    const name = `${process.cwd()}/test/a.test.ts`
    const testResults = [{ name, status: 'passed', assertionResults: [{ status: 'passed' }] }]
    expect(failuresOf({ testResults }, { files: ['a', 'b'], code: 0 })).toEqual([])
    expect(failuresOf({ testResults }, { files: ['a', 'b'], code: 1 })).toEqual([
      { file: 'a b', test: 'an error outside of the tests' },
    ])
  })
})

describe('npm run campaign', () => {
  it.each(['', 'nothing', 'crash power', 'all --minutes 0', 'all --seed x', '--rounds 5'])(
    'refuses "%s" and prints its usage',
    (line) => {
      const { status, stderr } = spawnSync(
        process.execPath,
        ['scripts/campaign.mjs', ...line.split(' ').filter(Boolean)],
        {
          encoding: 'utf8',
        },
      )
      expect([status, stderr]).toEqual([78, expect.stringContaining('Usage: npm run campaign')])
    },
  )
})
