import type { Refusal } from '../../base/errors.js'
import { problemOf } from '../../wire/problem.js'

/** How the clients of a route expect refusals. */
export interface RefusalForm {
  /** The refusal with the status that they expect. */
  adapt(refusal: Refusal): Refusal
  encode(refusal: Refusal, requestId: string): { contentType: string; body: string | Uint8Array }
}

/** The form of most routes (RFC 9457). */
export const problemDocuments: RefusalForm = {
  adapt: (refusal) => refusal,
  encode: (refusal, requestId) => ({
    contentType: 'application/problem+json',
    body: JSON.stringify(problemOf(refusal, requestId)),
  }),
}
