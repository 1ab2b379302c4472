/** What a node answers that stands by or stops, and a proxy before one that is away. */
const awayStatuses = new Set([502, 503, 504])

/**
 * Asks one address after the other, once each, until one serves. For reads alone.
 * @returns the answer of the first that serves, or else of the last, whose error is thrown where it gave none
 */
export async function askInTurn(
  urls: readonly string[],
  ask: (url: string) => Promise<Response>,
): Promise<Response> {
  const [url = '', ...others] = urls
  if (others.length === 0) return ask(url)
  const answer = await ask(url).catch(() => undefined)
  if (answer !== undefined && !awayStatuses.has(answer.status)) return answer
  await answer?.body?.cancel()
  return askInTurn(others, ask)
}
