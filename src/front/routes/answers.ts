import { refuse, type Refusal } from '../../base/errors.js'
import type { Outcome } from '../../protocol/messages.js'
import type { Answer } from './route.js'

export interface TextAnswer extends Answer {
  body: string
}

export function json(status: number, body: unknown): TextAnswer {
  return { status, body: JSON.stringify(body) }
}

/** Converts a reply to an answer; returns refusals unchanged. */
export function answerOf(outcome: Outcome): TextAnswer | Refusal {
  if ('code' in outcome) return outcome
  if (outcome.kind !== 'reply') return unexpected(outcome)
  const answer: TextAnswer = { status: outcome.status, body: outcome.body }
  return outcome.replayed === true ? { ...answer, headers: replayedHeaders } : answer
}

/** Marks a replayed answer to an Idempotency-Key (docs/adr/0008-idempotency.md). */
export const replayedHeaders = [['Idempotency-Replayed', 'true']] as const

/** Handles an unexpected outcome: a refusal is returned, anything else is a bug. */
export function unexpected(outcome: Outcome): Refusal {
  if ('code' in outcome) return outcome
  return refuse('internal_error', 'The shard returned an answer that this route does not expect')
}
