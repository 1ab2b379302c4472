import type { CustomFetch } from 'openid-client'
import { limits } from '../base/limits/limits.js'

/**
 * The only way to call a provider: redirects are not followed, and the time of a request with its answer and the bytes
 * of an answer are limited.
 * @throws Error at a redirect, beyond a limit, or when the provider cannot be reached
 */
export function boundedFetch({ requestMs }: { requestMs: number }): CustomFetch {
  return async (url, { method, headers, body }) => {
    const response = await fetch(url, {
      method,
      headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(requestMs),
      ...(body !== undefined && body !== null && { body: bodyOf(body) }),
    })
    const bytes = await readBounded(response)
    return new Response(bytes, {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
    })
  }
}

/** The library sends forms only, but its type allows everything that fetch accepts. */
function bodyOf(body: unknown): string | URLSearchParams {
  if (typeof body === 'string' || body instanceof URLSearchParams) return body
  throw new Error('Expected a form to be sent to a provider')
}

/** The body of an answer; null where the status has none. */
async function readBounded({ body }: Response): Promise<Uint8Array<ArrayBuffer> | null> {
  if (body === null) return null
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of body) {
    length += part.byteLength
    if (length > limits.oauthAnswerBytesMax) throw new Error('Expected a shorter answer of the provider')
    parts.push(part)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.byteLength
  }
  return bytes
}
