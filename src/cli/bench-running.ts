import { callServer, type BenchServer } from './bench-server.js'
import { describeTrouble, refusalOf } from './server-answer.js'
import type { AskedServer } from './server-url.js'

/** Milliseconds that the first answer may take. */
const ANSWER_MS = 30_000

/**
 * A server that runs already, to be measured as one that the bench has started.
 * @throws Error that says what to do where it does not answer, refuses the key, or limits the rate of this address
 */
export async function runningServer({ url, key = '' }: AskedServer): Promise<BenchServer> {
  const headers = { authorization: `Bearer ${key}` }
  const signal = AbortSignal.timeout(ANSWER_MS)
  const answer = await fetch(`${url}/v1/agents?limit=1`, { headers, signal, redirect: 'error' }).catch(
    (error: unknown) => {
      throw new Error(describeTrouble(error, url), { cause: error })
    },
  )
  // A limited address has the header on every answer, a refusal for another reason included.
  const policy = answer.headers.get('ratelimit-policy')
  if (answer.ok || answer.status === 429) await answer.body?.cancel()
  else throw new Error(await refusalOf(answer))
  if (policy !== null) {
    throw new Error(
      `The server limits the rate of this address (RateLimit-Policy ${policy}): start it with ` +
        'SERVICE_RATE_LIMIT_EXEMPT, such as 127.0.0.1/32, or SERVICE_RATE_LIMIT_RPS=0',
    )
  }
  return {
    url,
    rootKey: key,
    call: (path, body, alsoFine) => callServer(url + path, { rootKey: key, body, alsoFine }),
    async stop() {},
  }
}
