import { refuse } from '../../../base/errors.js'

/* Why streams are not opened, or end. */

/** 400 for a cursor of another stream, or of none. */
export const badCursor = refuse(
  'validation_failed',
  'Expected Last-Event-ID to be the id of an event of this stream',
)

/** 429 for a principal that has as many streams as it may have. */
export const tooManyStreams = refuse(
  'too_many_streams',
  'The credential has as many open streams as it can have: close one',
  {
    retryAfterSecs: 5,
  },
)

/** 401 for a user who was signed out while the stream was being opened. */
export const tokenRevoked = refuse(
  'token_revoked',
  'Expected a token that was not revoked and whose session goes on',
)

/** 401 for a key that was deleted while the stream was being opened. */
export const revoked = refuse('unauthorized', 'Expected a key that this server knows')
