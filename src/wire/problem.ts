import { Type, type Static } from 'typebox'
import { errorCatalogue, statusOf, type Refusal } from '../base/errors.js'
import { documentedParts } from './documented.js'

/** The answer to every failed request: `application/problem+json` (RFC 9457). */
export const Problem = Type.Object({
  type: Type.String({ description: 'URL of the code on the page /docs' }),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String(),
  code: Type.String({ description: 'Stable; see docs/errors.md' }),
  message: Type.String({ description: 'The same as detail' }),
  request_id: Type.String(),
  errors: Type.Optional(
    Type.Array(Type.Object({ pointer: Type.String(), code: Type.String(), detail: Type.String() })),
  ),
})
export type Problem = Static<typeof Problem>

/** The problem document of a refusal. */
export function problemOf(refusal: Refusal, requestId: string): Problem & Record<string, unknown> {
  const { title } = errorCatalogue[refusal.code]
  const status = statusOf(refusal)
  return {
    type: `/docs#error-${refusal.code}`,
    title,
    status,
    detail: refusal.detail,
    code: refusal.code,
    message: refusal.detail,
    request_id: requestId,
    ...(refusal.faults === undefined ? {} : { errors: refusal.faults }),
    ...refusal.extra,
  }
}

documentedParts({ Problem })
