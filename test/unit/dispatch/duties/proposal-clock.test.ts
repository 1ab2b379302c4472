import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { refuse, type Refusal } from '../../../../src/base/errors.js'
import { ProposalClock } from '../../../../src/dispatch/duties/proposal-clock.js'
import type { Shards } from '../../../../src/dispatch/links/shards.js'
import type { Command, Outcome } from '../../../../src/protocol/messages.js'
import type { Standing } from '../../../../src/protocol/proposal-messages.js'

/** The commands sent to one shard, and its next answers. */
let commands: Command[] = []
let answers: Partial<Record<Command['kind'], Outcome[]>> = {}
let standings: (principals: readonly string[]) => Promise<Standing[] | Refusal>
let clock: ProposalClock

const swept = { kind: 'swept', left: false } as const
const noAuthors: Extract<Outcome, { kind: 'authors' }> = { kind: 'authors', principals: [] }

beforeEach(() => {
  vi.useFakeTimers()
  commands = []
  answers = {}
  standings = async (principals) =>
    principals.map((principal) => ({ principal, valid: principal !== 'key_a' }))
  const askOne = async (_shard: number, command: Command): Promise<Outcome> => {
    commands.push(command)
    return answers[command.kind]?.shift() ?? (command.kind === 'proposalsSweep' ? swept : noAuthors)
  }
  const shards = { count: 1, requestShard: askOne } as Partial<Shards> as Shards
  const readStandings = (principals: readonly string[]) => standings(principals)
  clock = new ProposalClock({ shards, isOwn: () => true, readOnly: () => false, standings: readStandings })
})

afterEach(() => {
  clock.stop()
  vi.useRealTimers()
})

const sentOf = (kind: Command['kind']) => commands.filter((command) => command.kind === kind)

it('looks up missing proposers and sweeps again with their state', async () => {
  answers.proposalsSweep = [{ ...swept, authors: ['key_a', 'key_b'] }]
  await clock.start()
  const known = [
    { principal: 'key_a', valid: false },
    { principal: 'key_b', valid: true },
  ]
  expect(sentOf('proposalsSweep')).toMatchObject([{ standings: [] }, { standings: known }])
})

it('leaves due proposals to the next sweep while their proposers cannot be read', async () => {
  standings = async () => refuse('unavailable', 'The shard of the keys is starting')
  answers.proposalsSweep = [{ ...swept, left: true, authors: ['key_a'] }]
  await clock.start()
  expect(sentOf('proposalsSweep')).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(limits.proposalSweepMs)
  expect(sentOf('proposalsSweep')).toHaveLength(2)
})

it('ends open proposals of expired keys, page by page', async () => {
  await clock.start()
  const next = { agentNo: 1, seq: 7 }
  answers.proposalAuthors = [{ ...noAuthors, principals: ['key_a', 'key_b'], next }]
  answers.authorsEnd = [{ ...noAuthors, next }]
  await vi.advanceTimersByTimeAsync(limits.proposalAuthorsMs)
  expect(sentOf('proposalAuthors')).toEqual([
    { kind: 'proposalAuthors' },
    { kind: 'proposalAuthors', after: next },
  ])
  const ending = { kind: 'authorsEnd', principals: ['key_a'], options: {} }
  expect(sentOf('authorsEnd')).toEqual([ending, { ...ending, after: next }])
})
