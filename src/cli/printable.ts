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

/**
 * The messages of an error and its cause, as one printable line: the message of fetch alone is "fetch
 * failed".
 */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return printable(String(error))
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
  return printable(`${error.message}${cause}`)
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
