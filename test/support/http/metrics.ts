import { eventually } from '../eventually.js'

/**
 * The current metrics. `read` reads /metrics, which are cached for a second. Every read is counted in the
 * metrics, so a text that differs from the first one was computed after it.
 */
export async function metricsNow(read: () => Promise<{ text: string }>): Promise<string> {
  const { text: cached } = await read()
  let text = cached
  await eventually(async () => {
    ;({ text } = await read())
    return text !== cached
  })
  return text
}
