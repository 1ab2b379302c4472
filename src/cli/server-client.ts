import { connect } from 'node:net'
import { ServiceClient } from '../client/service-client.js'
import { printable } from './printable.js'
import { beginningOf, describeRequestError } from './server-answer.js'
import type { ServerTargets } from './server-url.js'

/** Maximum length of one answer. A page holds at most 4 MiB of bodies. */
const ANSWER_BYTES_MAX = 16_777_216

/** Milliseconds without any response after which a warning says why: the client tries for half a minute. */
const WARNING_MS = 1_500

/** Milliseconds in which a server that is only slow to respond accepts a connection. */
const CONNECT_MS = 1_000

/**
 * A client for the server of a command. It reads no more of an answer than a server sends, so it cannot
 * follow a stream. It prints why no server responds, and the client's warning about the rate limit.
 */
export function clientOf({ urls, key }: ServerTargets): ServiceClient {
  const reportingFetch = fetchReporting(urls, boundedFetch)
  return new ServiceClient({ url: urls, apiKey: key, fetch: reportingFetch, onWarning: printWarning })
}

/**
 * Makes a fetch that prints a warning if none of its requests gets a response for a while because of the
 * connection. fetch itself tries to connect for ten seconds.
 * @param urls the addresses of the server
 */
export function fetchReporting(urls: readonly string[], send: typeof fetch = fetch): typeof fetch {
  let timer: NodeJS.Timeout | undefined
  let failure: unknown
  const warn = async () => {
    const accepted = failure === undefined && (await Promise.all(urls.map(acceptsConnection))).includes(true)
    if (accepted || timer === undefined) return
    const reason =
      failure === undefined ? `No connection yet to ${urls.join(', ')}` : describeRequestError(failure, urls)
    printWarning(`${reason}; still trying`)
  }
  return async (...request) => {
    timer ??= setTimeout(warn, WARNING_MS).unref()
    try {
      const response = await send(...request)
      clearTimeout(timer)
      timer = undefined
      failure = undefined
      return response
    } catch (error) {
      failure = error
      throw error
    }
  }
}

function acceptsConnection(url: string): Promise<boolean> {
  const { hostname, port, protocol } = new URL(url)
  const socket = connect({
    host: hostname.replaceAll(/[[\]]/g, ''),
    port: Number(port || (protocol === 'https:' ? 443 : 80)),
    timeout: CONNECT_MS,
  })
  return new Promise((resolve) => {
    const end = (accepted: boolean) => {
      socket.destroy()
      resolve(accepted)
    }
    socket.once('connect', () => end(true))
    socket.once('timeout', () => end(false))
    socket.once('error', () => end(false))
  })
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
