import type { ChangeConsequences } from '../confirm.js'

/** The changes of a written record. */
export type RecordAction = 'delete' | 'restore' | 'erase'

/** The texts of each change: the title, the button, and the result. */
export const actionWords: Record<RecordAction, { title: string; button: string; done: string }> = {
  delete: { title: 'Delete', button: 'Delete record', done: 'The record is deleted' },
  restore: { title: 'Restore', button: 'Restore record', done: 'The record is active again' },
  erase: { title: 'Erase', button: 'Erase permanently', done: 'The body is erased' },
}

/** The consequences of a change. @param bodyText the size of the body, as text */
export function recordConsequences(action: RecordAction, bodyText: string): ChangeConsequences {
  if (action === 'erase') return ofErasing(bodyText)
  if (action === 'restore')
    return {
      removed: [],
      kept: ['The record appears in lists, in queries and in new streams again.'],
      notAffected: [],
    }
  return {
    removed: ['The record no longer appears in lists, in queries and in new streams.'],
    kept: [
      'The body, in the strand and in exports: it can still be read there, or by its hash.',
      'The record’s position, hash and signature. It can be restored.',
    ],
    notAffected: [],
  }
}

function ofErasing(bodyText: string): ChangeConsequences {
  return {
    removed: [
      `The body, ${bodyText}.`,
      'Its salt, so that a guess of the body cannot be confirmed.',
      'The copy in PostgreSQL, if the server writes one.',
    ],
    kept: [
      'Hash, signature, type, time and position in the chain: all proofs stay valid.',
      'A signed record that names who erased it.',
    ],
    notAffected: [
      'Existing backups and disk snapshots.',
      'Exports, and copies made by subscribers of streams.',
      'The SHA-256 of the request, for one day if it was written with an Idempotency-Key.',
    ],
  }
}
