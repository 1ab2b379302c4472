import type { StreamEvent } from '../../../protocol/messages.js'

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
