import { refuse, type Refusal } from '../../base/errors.js'
import type { Outcome } from '../../protocol/messages.js'
import type { Answer } from './route.js'

/** An answer whose body is a text. */
export interface TextAnswer extends Answer {
  body: string
}

/** A JSON answer. */
export function json(status: number, body: unknown): TextAnswer {
  return { status, body: JSON.stringify(body) }
}

/** The answer of an outcome that is one by itself; a refusal stays one. */
export function answerOf(outcome: Outcome): TextAnswer | Refusal {
  if ('code' in outcome) return outcome
  if (outcome.kind !== 'reply') return unexpected(outcome)
  const answer: TextAnswer = { status: outcome.status, body: outcome.body }
  return outcome.replayed === true ? { ...answer, headers: replayedHeaders } : answer
}

/** Tells that an answer was given before, under the same Idempotency-Key (docs/adr/0008-idempotency.md). */
export const replayedHeaders = [['Idempotency-Replayed', 'true']] as const

/** An outcome that the route did not ask for: a refusal goes on, anything else is a bug. */
export function unexpected(outcome: Outcome): Refusal {
  if ('code' in outcome) return outcome
  return refuse('internal_error', 'The shard gave an answer that this route does not know')
}
