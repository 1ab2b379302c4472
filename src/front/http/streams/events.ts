import type { StreamEvent } from '../../../protocol/stream-messages.js'
import { refuse } from '../../../base/errors.js'

/*
 * Framing of server-sent events (WHATWG HTML, 9.2). No field contains a line break: data is canonical JSON on
 * one line, ids are letters, digits and punctuation.
 */

/** The first line of a stream: how many milliseconds a client waits before it reconnects. */
export const retryLine = 'retry: 2000\n\n'

/** Keeps the connection open; clients ignore it. */
export const heartbeat = ': keep-alive\n\n'

export function recordEvent(id: string, event: StreamEvent): string {
  return `id: ${id}\nevent: record\ndata: ${event.data}\n\n`
}

/**
 * Sent when replay has reached the live events. Its id lets a client resume here even if it has received no
 * event yet.
 */
export function caughtUpEvent(id: string): string {
  return `id: ${id}\nevent: caught_up\ndata: {}\n\n`
}

/* Reasons why a stream is refused or ended. */

/** 400 for an invalid cursor, or that of another stream. */
export const badCursor = refuse(
  'validation_failed',
  'Expected Last-Event-ID to be the id of an event of this stream',
)

/** 503 while all principals together have the maximum number of open streams. */
export const tooManyOpen = refuse('overloaded', 'Too many streams are open, try again', { retryAfterSecs: 5 })

/** 429 for a principal with the maximum number of open streams. */
export const tooManyStreams = refuse(
  'too_many_streams',
  'This credential has the maximum number of open streams: close one first',
  { retryAfterSecs: 5 },
)

/** 401 for a user who was signed out while the stream was being opened. */
export const tokenRevoked = refuse('token_revoked', 'The token was revoked, or its session has ended')

/** 401 for a key that was deleted while the stream was being opened. */
export const keyEnded = refuse('unauthorized', 'The key was deleted or has expired')
