/*
 * Texts from a server or a file may contain control characters. A terminal obeys them: it moves the cursor,
 * hides lines, or sends input as if the user had typed it. A name with a zero-width character looks like another
 * name.
 */

/**
 * Control characters, bidirectional formatting and zero-width characters, line separators, and lone surrogates.
 */
const unsafe = /[\p{Cc}\p{Cs}\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu

/** A text as one line without characters that a terminal obeys; they are escaped as in JSON. */
export function printable(text: string): string {
  return text.replace(unsafe, (found) => escaped(found))
}

/** Like `printable`, but keeps line feeds. */
export function printableLines(text: string): string {
  return text.replace(unsafe, (found) => (found === '\n' ? found : escaped(found)))
}

/** Like `printableLines`, for a stream of UTF-8 bytes. */
export async function* printableBytes(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  for await (const chunk of chunks) yield printableLines(decoder.decode(chunk, { stream: true }))
}

/** Causes that are read of one error: an error can be its own cause. */
const CAUSES_MAX = 8

/** An error and its causes, the error first. */
export function causesOf(error: unknown): Error[] {
  const found: Error[] = []
  for (let one = error; one instanceof Error && found.length < CAUSES_MAX; one = one.cause) found.push(one)
  return found
}

/** The messages of an error and its deepest cause, as one printable line. */
export function describeError(error: unknown): string {
  const [first, ...causes] = causesOf(error)
  if (first === undefined) return printable(String(error))
  const cause = causes.at(-1)
  return printable(cause === undefined ? messageOf(first) : `${messageOf(first)}: ${messageOf(cause)}`)
}

/** An AggregateError, with one error for each address of a host, has a code and no message. */
function messageOf(error: Error): string {
  if (error.message === 'fetch failed') return 'The server could not be reached'
  return error.message || ('code' in error ? String(error.code) : error.name)
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
