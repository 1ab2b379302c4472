import { STATUS_CODES } from 'node:http'
import { statusOf, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { HttpResponse } from '../door/door.js'

/** Header fields in the order in which they are written: names and values. */
export type HeaderFields = readonly (readonly [string, string])[]

const statusLines = new Map<number, string>()
for (const [status, text] of Object.entries(STATUS_CODES))
  statusLines.set(Number(status), `${status} ${text}`)

/** No body, and no length of one: 204, and 304, whose length would be that of the body left out (RFC 9110, 8.6). */
export const isBodiless = (status: number) => status === 204 || status === 304

const exposedHeaders = 'ETag, Idempotency-Replayed, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id'

/**
 * Writes the status line of an answer, the headers that every answer has, and its own. No cache keeps an answer unless its
 * own headers say so (RFC 9111, 5.2.2.5); one that may be kept depends on the origin of the request, named or not.
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
  let isKept = false
  for (const [name, value] of headers) {
    isKept ||= name === 'Cache-Control'
    response.writeHeader(name, value)
  }
  if (!isKept) response.writeHeader('Cache-Control', 'no-store')
  if (isKept || about.allowedOrigin !== '') response.writeHeader('Vary', 'Origin')
  if (about.allowedOrigin === '') return
  response.writeHeader('Access-Control-Allow-Origin', about.allowedOrigin)
  response.writeHeader('Access-Control-Expose-Headers', exposedHeaders)
}

/** What a 401 asks for, by scheme. */
export const bearer: readonly string[] = ['Bearer']

/**
 * For clients that send a name and a password only once they are asked (curl --anyauth, wget). Each scheme has a header of
 * its own, since some read one scheme of each (RFC 9110, 11.6.1). Browsers show a dialog of their own for Basic: neither
 * other routes nor requests of pages are answered with it.
 */
export const basicToo: readonly string[] = [...bearer, 'Basic realm="strandfast", charset="UTF-8"']

/** Writes what a refusal says of the next request. @param challenges what a 401 asks for, by scheme */
export function writeRefusalFields(
  response: HttpResponse,
  refusal: Refusal,
  challenges: readonly string[],
): void {
  const status = statusOf(refusal)
  if (status === 401) for (const challenge of challenges) response.writeHeader('WWW-Authenticate', challenge)
  if (refusal.acceptEncoding !== undefined) response.writeHeader('Accept-Encoding', refusal.acceptEncoding)
  const retrySecs = refusal.retryAfterSecs ?? (status === 507 ? limits.storageFullRetrySecs : undefined)
  if (retrySecs !== undefined) response.writeHeader('Retry-After', String(retrySecs))
}

const keepAlive = `timeout=${limits.keepAliveSecs}`

/**
 * Says how long the connection stays open without a request. uWebSockets.js closes it after three ticks of a clock of
 * four seconds, which is 8 to 12 s; the header leaves three seconds for the answer and the next request to arrive. A
 * client that keeps to it never sends a request on a connection that the server is about to close (docs/OPERATIONS.md,
 * Connections).
 */
export function writeKeepAlive(response: HttpResponse): void {
  response.writeHeader('Keep-Alive', keepAlive)
}
