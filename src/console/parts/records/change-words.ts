import type { Left } from '../confirm.js'

/** What can be done to a record once it is written. */
export type RecordAction = 'delete' | 'restore' | 'erase'

/** The words of a change: its question, its button, and what it leads to. */
export const actionWords: Record<RecordAction, { title: string; button: string; done: string }> = {
  delete: { title: 'Delete', button: 'Delete it', done: 'The record is deleted' },
  restore: { title: 'Restore', button: 'Restore it', done: 'The record is active again' },
  erase: { title: 'Erase', button: 'Erase it for good', done: 'The body is erased' },
}

/** Says what a change leaves. */
export function leftBy(action: RecordAction, bodyText: string): Left {
  if (action === 'erase') return leftByErasing(bodyText)
  if (action === 'restore')
    return {
      goes: [],
      stays: ['The record appears again in lists, queries and streams that begin later.'],
      notReached: [],
    }
  return {
    goes: ['The record is left out of lists, queries and streams that begin later.'],
    stays: [
      'The body, in the strand and in exports: whoever may read them, or knows the hash, can read it.',
      'The record’s place, hash and signature. It can be restored.',
    ],
    notReached: [],
  }
}

function leftByErasing(bodyText: string): Left {
  return {
    goes: [
      `The body, ${bodyText}.`,
      'Its salt, so that nobody can confirm a guess of the body.',
      'The copy in PostgreSQL, where the server keeps one.',
    ],
    stays: [
      'Hash, signature, type, time and place in the chain: all proofs go on to hold.',
      'A signed record that says who erased it.',
    ],
    notReached: [
      'Backups and snapshots of the disk that were made before.',
      'Exports, and what followers of streams have kept.',
      'For a day after it was written with an Idempotency-Key: the SHA-256 of the request.',
    ],
  }
}
