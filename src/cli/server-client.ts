import { ServiceClient } from '../client/service-client.js'
import { printable } from './printable.js'
import { beginningOf, describeRequestError } from './server-answer.js'
import type { ServerTargets } from './server-url.js'

/** Maximum length of one answer. A page holds at most 4 MiB of bodies. */
const ANSWER_BYTES_MAX = 16_777_216

/** Milliseconds without any response after which a warning says why: the client tries for half a minute. */
const WARNING_MS = 2_000

/**
 * A client for the server of a command. It reads no more of an answer than a server sends, so it cannot
 * follow a stream. It prints why there is no response yet, and the client's warning about the rate limit.
 */
export function clientOf({ urls, key }: ServerTargets): ServiceClient {
  let timer: NodeJS.Timeout | undefined
  let failure: unknown
  const warn = () => {
    const reason =
      failure === undefined ? `No response yet from ${urls.join(', ')}` : describeRequestError(failure, urls)
    printWarning(`${reason}; still trying`)
  }
  const reportingFetch: typeof fetch = async (...request) => {
    timer ??= setTimeout(warn, WARNING_MS).unref()
    try {
      const response = await boundedFetch(...request)
      clearTimeout(timer)
      timer = undefined
      failure = undefined
      return response
    } catch (error) {
      failure = error
      throw error
    }
  }
  return new ServiceClient({ url: urls, apiKey: key, fetch: reportingFetch, onWarning: printWarning })
}

/** Prints a warning of the client or the server on standard error. */
export function printWarning(warning: string): void {
  process.stderr.write(`warning: ${printable(warning)}\n`)
}

/** Reads an answer completely. One that is too long becomes an error, which the client does not repeat. */
async function boundedFetch(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request)
  const { text, whole } = await beginningOf(response, ANSWER_BYTES_MAX)
  if (whole) return new Response(text === '' ? null : text, response)
  const detail = `The response of the server has more than ${ANSWER_BYTES_MAX} bytes`
  return Response.json({ code: 'invalid_response', detail }, { status: 500 })
}
