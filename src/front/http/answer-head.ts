import { STATUS_CODES } from 'node:http'
import { statusOf, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { HttpResponse } from '../engine/http-listener.js'

/** Header fields in order: names and values. */
export type HeaderFields = readonly (readonly [string, string])[]

const statusLines = new Map<number, string>()
for (const [status, text] of Object.entries(STATUS_CODES))
  statusLines.set(Number(status), `${status} ${text}`)

/**
 * Statuses without a body and without Content-Length: 204, and 304, whose length would be that of the omitted
 * body (RFC 9110, 8.6).
 */
export const isBodiless = (status: number) => status === 204 || status === 304

const exposedHeaders = 'ETag, Idempotency-Replayed, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id'

/**
 * Writes the status line, the headers of every answer, and the answer's own headers. Answers are not cached
 * unless their own headers allow it (RFC 9111, 5.2.2.5). A cacheable answer varies by the request's origin,
 * even if the request has none.
 */
export function writeAnswerHead(
  response: HttpResponse,
  about: { requestId: string; allowedOrigin: string; rate: HeaderFields },
  {
    status,
    contentType,
    headers = [],
  }: { status: number; contentType: string; headers: HeaderFields | undefined },
): void {
  response.writeStatus(statusLines.get(status) ?? String(status))
  response.writeHeader('Content-Type', contentType)
  response.writeHeader('X-Content-Type-Options', 'nosniff')
  response.writeHeader('X-Request-Id', about.requestId)
  for (const [name, value] of about.rate) response.writeHeader(name, value)
  let isCacheable = false
  for (const [name, value] of headers) {
    isCacheable ||= name === 'Cache-Control'
    response.writeHeader(name, value)
  }
  if (!isCacheable) response.writeHeader('Cache-Control', 'no-store')
  if (isCacheable || about.allowedOrigin !== '') response.writeHeader('Vary', 'Origin')
  if (about.allowedOrigin === '') return
  response.writeHeader('Access-Control-Allow-Origin', about.allowedOrigin)
  response.writeHeader('Access-Control-Expose-Headers', exposedHeaders)
}

/** The challenges of a 401: one scheme. */
export const bearer: readonly string[] = ['Bearer']

/**
 * For clients that send a name and a password only after a challenge (curl --anyauth, wget). Each scheme has
 * its own header, because some clients read only one scheme of each header (RFC 9110, 11.6.1). Browsers show
 * a dialog for Basic and then send the key with requests of pages, also of other origins, so other routes and
 * requests of web pages are not answered with it.
 */
export const bearerOrBasic: readonly string[] = [...bearer, 'Basic realm="strandfast", charset="UTF-8"']

/** Writes the headers that say how to send the next request. @param challenges of a 401, by scheme */
export function writeRefusalFields(
  response: Pick<HttpResponse, 'writeHeader'>,
  refusal: Refusal,
  challenges: readonly string[],
): void {
  const status = statusOf(refusal)
  if (status === 401) for (const challenge of challenges) response.writeHeader('WWW-Authenticate', challenge)
  if (refusal.acceptEncoding !== undefined) response.writeHeader('Accept-Encoding', refusal.acceptEncoding)
  const retrySecs = refusal.retryAfterSecs ?? usualRetrySecs.get(status)
  if (retrySecs !== undefined) response.writeHeader('Retry-After', String(retrySecs))
}

/** `Retry-After` of a refusal that does not say more, by status. */
const usualRetrySecs: ReadonlyMap<number, number> = new Map([
  [503, limits.unavailableRetrySecs],
  [507, limits.storageFullRetrySecs],
])

const keepAlive = `timeout=${limits.keepAliveSecs}`

/**
 * Announces how long an idle connection stays open. uWebSockets.js closes it after three ticks of a
 * four-second clock, which is 8 to 12 s; the header leaves three seconds for the answer and the next request
 * to arrive. A client that respects it never sends a request on a connection that the server is about to
 * close (docs/NETWORK.md).
 */
export function writeKeepAlive(response: HttpResponse): void {
  response.writeHeader('Keep-Alive', keepAlive)
}
