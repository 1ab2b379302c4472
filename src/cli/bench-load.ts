import type autocannon from 'autocannon'

/** One request of a load. */
export interface LoadRequest {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body?: string
}

/** The requests of a load, and how they are sent. */
export interface Load {
  url: string
  /** Each connection goes through them again and again. */
  requests: LoadRequest[]
  connections: number
  seconds: number
}

/** The result of a load. Times are from a request to the end of its answer. */
export interface LoadResult {
  answered: number
  perSecond: number
  p50Ms: number
  p99Ms: number
}

/** Seconds that an answer may take. */
const ANSWER_SECS = 30

/** The load generator, which an installed server does without. @returns undefined where it is not installed */
export async function loadGenerator(): Promise<typeof autocannon | undefined> {
  try {
    return (await import('autocannon')).default
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}

/**
 * Sends requests as fast as answers come.
 * @throws Error when an answer was other than 2xx, did not come, or no answer came at all
 */
export async function runLoad({ url, requests, connections, seconds }: Load): Promise<LoadResult> {
  const generate = await loadGenerator()
  if (generate === undefined) throw new Error(noGenerator)
  const times: number[] = []
  const summary = await new Promise<autocannon.LoadSummary>((resolve, reject) => {
    const options = { url, connections, duration: seconds, timeout: ANSWER_SECS, requests }
    const load = generate(options, (error, summary) => (error === null ? resolve(summary) : reject(error)))
    // autocannon's own latencies are whole milliseconds.
    load.on('response', (...[, , , elapsedMs]) => times.push(elapsedMs))
  })
  const { non2xx, errors, timeouts, duration } = summary
  const answered = summary.requests.total
  const failed = non2xx + errors + timeouts
  if (failed > 0) throw new Error(`${failed} of ${answered + errors} requests failed`)
  if (answered === 0 || times.length === 0) throw new Error('No request was answered')
  const sorted = Float64Array.from(times).sort()
  return {
    answered,
    perSecond: answered / duration,
    p50Ms: nearestRank(sorted, 0.5),
    p99Ms: nearestRank(sorted, 0.99),
  }
}

/** What to do where the load generator is not installed. */
export const noGenerator =
  'The load comes from the package autocannon, which is not there: npm install autocannon'

function nearestRank(sorted: Float64Array, share: number): number {
  return sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN
}
