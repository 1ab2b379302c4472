/*
 * Texts of a server or a file are shown on a terminal, which obeys control characters: it moves the cursor, hides
 * lines, or answers as if somebody had typed.
 */

/** Control characters, those that change the direction of a text, line separators, and halves of characters. */
const unsafe = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** A text as one line that a terminal only shows. */
export function printable(text: string): string {
  return text.replace(unsafe, (found) => escaped(found))
}

/** The same for a text of several lines. */
export function printableLines(text: string): string {
  return text.replace(unsafe, (found) => (found === '\n' ? found : escaped(found)))
}

/** The same for bytes that come one after another. */
export async function* printableBytes(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  for await (const chunk of chunks) yield printableLines(decoder.decode(chunk, { stream: true }))
}

/** The message of an error and of its causes, as one printable line: fetch itself says only "fetch failed". */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return printable(String(error))
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
  return printable(`${error.message}${cause}`)
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
