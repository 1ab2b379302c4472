import { eventually } from '../eventually.js'

/**
 * The metrics as they are now. `read` reads /metrics, which are kept for a second: each reading is counted among them, so
 * those that differ from the first were made after it.
 */
export async function metricsNow(read: () => Promise<{ text: string }>): Promise<string> {
  const { text: kept } = await read()
  let text = kept
  await eventually(async () => {
    ;({ text } = await read())
    return text !== kept
  })
  return text
}
