import { ServiceError } from '../client/errors.js'
import { isMembers, readBodyJson } from '../proof/strict-json.js'
import { describeError, printable } from './printable.js'

/*
 * What a server's refusal, or its silence, means to somebody at a terminal: one sentence, and what to do next.
 */

/** What to do about a refusal, by its code. */
const nextSteps: Readonly<Record<string, string>> = {
  unauthorized:
    'give its root key by --key or SERVICE_ROOT_API_KEY, or run this beside its data directory (--data-dir)',
  invalid_token: 'give another key by --key',
  forbidden: 'give a key that may do this by --key',
  agent_not_found: 'look at the name, and at whether it is this server (--url)',
  rate_limited: 'wait a moment, or have the server exempt this address (SERVICE_RATE_LIMIT_EXEMPT)',
  shutting_down: 'try again when the server has started',
}

/** What is known of a refusal: the members of a problem document (RFC 9457). */
interface KnownRefusal {
  status: number
  code?: string | undefined
  detail?: string | undefined
  /** The whole text, of which the beginning is shown where it is not a problem document. */
  text?: string | undefined
}

/** Characters shown of an answer that is not a problem document. */
const SHOWN_CHARS_MAX = 120

/** A refusal in one sentence with its status and code, and the next step where there is one to name. */
export function describeRefusal({ status, code, detail, text = '' }: KnownRefusal): string {
  if (code === undefined) {
    const said = text === '' ? '' : `: ${text.trim().slice(0, SHOWN_CHARS_MAX)}`
    return printable(
      `The server answered ${status}, not as Strandfast does: look at the address (--url)${said}`,
    )
  }
  const next = nextSteps[code]
  const said = detail === undefined || detail === '' ? 'The server refused it' : detail
  return printable(`${said} (${status} ${code})${next === undefined ? '' : `: ${next}`}`)
}

/** The same of an answer whose body is still unread. */
export async function refusalOf(answer: Response): Promise<string> {
  return describeRefusal(readRefusal(answer.status, await errorText(answer)))
}

/** The members of the text of a refusal. */
export function readRefusal(status: number, text: string): KnownRefusal & Record<string, unknown> {
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

/** Codes of the system, or of fetch, when nobody answers at an address. */
const unanswered = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'ETIMEDOUT',
])

/**
 * Why a call failed, in one sentence with the next step.
 * @param urls the address that was asked, or all of them
 */
export function describeTrouble(error: unknown, urls: string | readonly string[]): string {
  if (error instanceof ServiceError && error.status > 0) {
    const { status, code, message: detail } = error
    return describeRefusal({ status, code, detail })
  }
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (!unanswered.has(code)) return describeError(error)
  const origins = [urls].flat().map((url) => new URL(url).origin)
  return printable(
    `No server answers at ${origins.join(', ')} (${code}): start it by strandfast serve, or name its address by --url`,
  )
}

/** Whether an error means that whoever read the output has closed it, as `head` does: no failure of ours. */
export function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE'
}

/** Bytes of an error answer that are read. */
const ERROR_BYTES_MAX = 2_000

/**
 * Reads an answer of a server that may send without end.
 * @throws Error when it has more than `bytesMax` bytes
 */
export async function boundedText(answer: Response, bytesMax: number): Promise<string> {
  const { text, whole } = await beginningOf(answer, bytesMax)
  if (!whole) throw new Error(`The server answers more than ${bytesMax} bytes, which is no answer to this`)
  return text
}

/** The beginning of an error answer, safe to show. */
export async function errorText(answer: Response): Promise<string> {
  const { text } = await beginningOf(answer, ERROR_BYTES_MAX)
  return text
}

async function beginningOf(answer: Response, bytesMax: number): Promise<{ text: string; whole: boolean }> {
  if (answer.body === null) return { text: '', whole: true }
  const decoder = new TextDecoder()
  let text = ''
  let left = bytesMax
  // Leaving the loop ends the connection.
  for await (const part of answer.body) {
    text += decoder.decode(part.subarray(0, left), { stream: true })
    if (part.length > left) return { text, whole: false }
    left -= part.length
  }
  return { text: text + decoder.decode(), whole: true }
}

/** What a node answers that stands by or stops, and a proxy before one that is away. */
const awayStatuses = new Set([502, 503, 504])

/**
 * Asks one address after the other, once each, until one serves. For reads alone.
 * @returns the answer of the first that serves, or else of the last, whose error is thrown where it gave none
 */
export async function tryEachUrl(
  urls: readonly string[],
  ask: (url: string) => Promise<Response>,
): Promise<Response> {
  const [url = '', ...others] = urls
  if (others.length === 0) return ask(url)
  const answer = await ask(url).catch(() => undefined)
  if (answer !== undefined && !awayStatuses.has(answer.status)) return answer
  await answer?.body?.cancel()
  return tryEachUrl(others, ask)
}
