import { ServiceError } from '../client/errors.js'
import { isMembers, readBodyJson } from '../proof/strict-json.js'
import { causesOf, describeError, printable } from './printable.js'

/*
 * Describes a refused or failed request to the user of the command line: one sentence, and what to do next.
 */

/** What to do about a refusal, by its error code. */
const nextSteps: Readonly<Record<string, string>> = {
  unauthorized:
    'give the root key with --api-key or SERVICE_ROOT_API_KEY, or use --data-dir on the machine of the server',
  invalid_token: 'give another key with --api-key',
  forbidden: 'give a key with more scopes with --api-key',
  agent_not_found: 'check the name, and the address of the server (--url)',
  rate_limited: 'wait a moment, or exempt this address on the server (SERVICE_RATE_LIMIT_EXEMPT)',
  shutting_down: 'try again when the server has started',
}

/** A refusal: the members of its problem document (RFC 9457), as far as there is one. */
interface RefusedResponse {
  status: number
  code?: string | undefined
  detail?: string | undefined
  /** The body; its beginning is shown if it is not a problem document. */
  text?: string | undefined
}

/** Number of characters shown of a response that is not a problem document. */
const SHOWN_CHARS_MAX = 120

/** A refusal in one sentence with its status and code, and the next step if there is one. */
export function describeRefusal({ status, code, detail, text = '' }: RefusedResponse): string {
  if (code === undefined) {
    const beginning = text === '' ? '' : `: ${text.trim().slice(0, SHOWN_CHARS_MAX)}`
    return printable(
      `The response (status ${status}) is not from a Strandfast server: check the address (--url)${beginning}`,
    )
  }
  const next = nextSteps[code]
  const reason = detail === undefined || detail === '' ? 'The server refused the request' : detail
  return printable(`${reason} (${status} ${code})${next === undefined ? '' : `: ${next}`}`)
}

/** Describes a refusal whose body has not been read yet. */
export async function refusalOf(response: Response): Promise<string> {
  return describeRefusal(readRefusal(response.status, await errorText(response)))
}

/** Reads the body of a refusal; members that are missing, or not texts, are undefined. */
export function readRefusal(status: number, text: string): RefusedResponse & Record<string, unknown> {
  const value = readBodyJson(text)?.value
  const members = isMembers(value) ? value : {}
  const textOf = (member: unknown) => (typeof member === 'string' ? member : undefined)
  return {
    ...members,
    text,
    status,
    code: textOf(members['code']),
    detail: textOf(members['detail'] ?? members['title']),
  }
}

/** Error codes of the system or of fetch if no server responds at an address. */
const unreachableCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
])

/**
 * Describes why a request failed, in one sentence with the next step.
 * @param urls the addresses that were tried
 */
export function describeRequestError(error: unknown, urls: string | readonly string[]): string {
  if (error instanceof ServiceError && error.status > 0) {
    const { status, code, message: detail } = error
    return describeRefusal({ status, code, detail })
  }
  const codes = causesOf(error).map((cause) => ('code' in cause ? String(cause.code) : ''))
  const code = codes.find((one) => unreachableCodes.has(one))
  if (code === undefined) return describeError(error)
  const origins = [urls].flat().map((url) => new URL(url).origin)
  return printable(
    `No server responds at ${origins.join(', ')} (${code}): start one with strandfast serve, or give its address with --url`,
  )
}

/**
 * Whether an error means that the reader of the output has closed the pipe, as `head` does. This is not a
 * failure.
 */
export function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE'
}

/** Maximum number of bytes read of an error response. */
const ERROR_BYTES_MAX = 2_000

/**
 * Reads a response of at most `bytesMax` bytes.
 * @throws Error if the server sends more
 */
export async function boundedText(response: Response, bytesMax: number): Promise<string> {
  const { text, whole } = await beginningOf(response, bytesMax)
  if (!whole) throw new Error(`The response of the server has more than ${bytesMax} bytes`)
  return text
}

export async function errorText(response: Response): Promise<string> {
  const { text } = await beginningOf(response, ERROR_BYTES_MAX)
  return text
}

/** Reads a response up to `bytesMax` bytes. @returns the text, and whether it is complete */
export async function beginningOf(
  response: Response,
  bytesMax: number,
): Promise<{ text: string; whole: boolean }> {
  if (response.body === null) return { text: '', whole: true }
  const decoder = new TextDecoder()
  let text = ''
  let remaining = bytesMax
  // Leaving the loop closes the connection.
  for await (const part of response.body) {
    text += decoder.decode(part.subarray(0, remaining), { stream: true })
    if (part.length > remaining) return { text, whole: false }
    remaining -= part.length
  }
  return { text: text + decoder.decode(), whole: true }
}

/** Statuses of a standby, of a stopping node, and of a proxy that cannot reach its node. */
const unavailableStatuses = new Set([502, 503, 504])

/**
 * Tries one address after another, once each, until one serves. For reads only.
 * @returns the response of the first address that serves, otherwise of the last one
 * @throws the error of the last address if it did not respond
 */
export async function tryEachUrl(
  urls: readonly string[],
  request: (url: string) => Promise<Response>,
): Promise<Response> {
  const [url = '', ...others] = urls
  if (others.length === 0) return request(url)
  const response = await request(url).catch(() => undefined)
  if (response !== undefined && !unavailableStatuses.has(response.status)) return response
  await response?.body?.cancel()
  return tryEachUrl(others, request)
}
