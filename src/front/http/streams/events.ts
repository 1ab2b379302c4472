import type { StreamEvent } from '../../../protocol/messages.js'
import { refuse } from '../../../base/errors.js'

/*
 * Framing of server-sent events (WHATWG HTML, 9.2). No field contains a line break: data is canonical JSON in one line,
 * ids are digits and letters.
 */

/** How long a client waits before it connects again, milliseconds; the first line of a stream. */
export const retryLine = 'retry: 2000\n\n'

/** Keeps the connection open; clients ignore it. */
export const heartbeat = ': keep-alive\n\n'

/** One record. */
export function recordEvent(id: string, event: StreamEvent): string {
  return `id: ${id}\nevent: record\ndata: ${event.data}\n\n`
}

/**
 * Sent when replay has reached the live events. With its id, a client that has had no event yet can resume from here.
 */
export function caughtUpEvent(id: string): string {
  return `id: ${id}\nevent: caught_up\ndata: {}\n\n`
}

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
