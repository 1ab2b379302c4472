import type { StreamEvent } from '../../protocol/messages.js'

/*
 * Framing of server-sent events (WHATWG HTML, 9.2). Nothing sent has a line break of its own: data is canonical JSON
 * in one line, ids are digits and letters.
 */

/** How long a client waits before it connects again, milliseconds; the first thing that a stream says. */
export const retryLine = 'retry: 2000\n\n'

/** Keeps the connection open; clients pass over it. */
export const heartbeat = ': keep-alive\n\n'

/** One record. */
export function recordEvent(id: string, event: StreamEvent): string {
  return `id: ${id}\nevent: record\ndata: ${event.data}\n\n`
}

/** Replay has met live. The id lets a client that has had no event yet go on from here. */
export function caughtUpEvent(id: string): string {
  return `id: ${id}\nevent: caught_up\ndata: {}\n\n`
}
