import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { refuse, type Refusal } from '../../../../src/base/errors.js'
import { ProposalClock } from '../../../../src/dispatch/duties/proposal-clock.js'
import type { Shards } from '../../../../src/dispatch/links/shards.js'
import type { Command, Outcome } from '../../../../src/protocol/messages.js'
import type { Standing } from '../../../../src/protocol/proposal-messages.js'

/** What one shard was asked, and what it answers next. */
let asked: Command[] = []
let answers: Partial<Record<Command['kind'], Outcome[]>> = {}
let standings: (principals: readonly string[]) => Promise<Standing[] | Refusal>
let clock: ProposalClock

const swept = { kind: 'swept', left: false } as const
const noAuthors: Extract<Outcome, { kind: 'authors' }> = { kind: 'authors', principals: [] }

beforeEach(() => {
  vi.useFakeTimers()
  asked = []
  answers = {}
  standings = async (principals) =>
    principals.map((principal) => ({ principal, valid: principal !== 'key_a' }))
  const askOne = async (_shard: number, command: Command): Promise<Outcome> => {
    asked.push(command)
    return answers[command.kind]?.shift() ?? (command.kind === 'proposalsSweep' ? swept : noAuthors)
  }
  const shards = { count: 1, askOne } as Partial<Shards> as Shards
  const looked = (principals: readonly string[]) => standings(principals)
  clock = new ProposalClock({ shards, isOwn: () => true, readOnly: () => false, standings: looked })
})

afterEach(() => {
  clock.stop()
  vi.useRealTimers()
})

const sentTo = (kind: Command['kind']) => asked.filter((command) => command.kind === kind)

it('looks up the proposers that a sweep lacks, and sweeps again with their standings', async () => {
  answers.proposalsSweep = [{ ...swept, authors: ['key_a', 'key_b'] }]
  await clock.start()
  const known = [
    { principal: 'key_a', valid: false },
    { principal: 'key_b', valid: true },
  ]
  expect(sentTo('proposalsSweep')).toMatchObject([{ standings: [] }, { standings: known }])
})

it('leaves what is due to the next sweep while its proposers cannot be looked up', async () => {
  standings = async () => refuse('unavailable', 'The shard of the keys is starting')
  answers.proposalsSweep = [{ ...swept, left: true, authors: ['key_a'] }]
  await clock.start()
  expect(sentTo('proposalsSweep')).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(limits.proposalSweepMs)
  expect(sentTo('proposalsSweep')).toHaveLength(2)
})

it('ends what is open of keys that have expired, page by page', async () => {
  await clock.start()
  const next = { agentNo: 1, seq: 7 }
  answers.proposalAuthors = [{ ...noAuthors, principals: ['key_a', 'key_b'], next }]
  answers.authorsEnd = [{ ...noAuthors, next }]
  await vi.advanceTimersByTimeAsync(limits.proposalAuthorsMs)
  expect(sentTo('proposalAuthors')).toEqual([
    { kind: 'proposalAuthors' },
    { kind: 'proposalAuthors', after: next },
  ])
  const ending = { kind: 'authorsEnd', principals: ['key_a'], options: {} }
  expect(sentTo('authorsEnd')).toEqual([ending, { ...ending, after: next }])
})
