/** Bytes of an error answer that are read. */
const ERROR_BYTES_MAX = 2_000

/**
 * Reads an answer of a server that may send without end.
 * @throws Error when it has more than `bytesMax` bytes
 */
export async function boundedText(answer: Response, bytesMax: number): Promise<string> {
  const { text, whole } = await beginningOf(answer, bytesMax)
  if (!whole) throw new Error(`The server answers more than ${bytesMax} bytes, which is no answer to this`)
  return text
}

/** The beginning of an error answer, safe to show. */
export async function errorText(answer: Response): Promise<string> {
  const { text } = await beginningOf(answer, ERROR_BYTES_MAX)
  return text
}

async function beginningOf(answer: Response, bytesMax: number): Promise<{ text: string; whole: boolean }> {
  if (answer.body === null) return { text: '', whole: true }
  const decoder = new TextDecoder()
  let text = ''
  let left = bytesMax
  // Leaving the loop ends the connection.
  for await (const part of answer.body) {
    text += decoder.decode(part.subarray(0, left), { stream: true })
    if (part.length > left) return { text, whole: false }
    left -= part.length
  }
  return { text: text + decoder.decode(), whole: true }
}
