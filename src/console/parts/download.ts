/** Saves bytes or text as a file. */
export function saveFile(name: string, content: Blob | string): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: 'text/plain' }) : content
  const address = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  // The download has started by the next turn of the event loop and no longer needs the address.
  setTimeout(() => URL.revokeObjectURL(address), 0)
}

/** The name of an agent, made safe for a file name. */
export function fileName(agent: string): string {
  return agent.replaceAll(/[^A-Za-z0-9_.-]+/g, '-')
}

/**
 * Reads a stream to its end.
 * @throws the error of the stream; the signal's reason
 */
export async function gather(
  stream: ReadableStream<Uint8Array>,
  { signal, onBytes }: { signal: AbortSignal; onBytes: (bytes: number) => void },
): Promise<Blob> {
  const reader = stream.getReader()
  const pieces: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  try {
    for (;;) {
      signal.throwIfAborted()
      const { done, value } = await reader.read()
      if (done) return new Blob(pieces, { type: 'application/octet-stream' })
      pieces.push(new Uint8Array(value))
      bytes += value.length
      onBytes(bytes)
    }
  } catch (error) {
    await reader.cancel().catch(() => undefined)
    throw error
  }
}
