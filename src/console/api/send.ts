import { explain } from '../parts/explain.js'
import { pretty } from './request.js'

/** A request as it is sent. */
export interface SentRequest {
  address: string
  method: string
  headers: Headers
  body: string | undefined
  /** Whether a key was typed. */
  hasKey: boolean
}

/** What is known of an answer so far. */
export interface AnswerProgress {
  isEnded: boolean
  isStopped: boolean
  /** Why there is no answer, or no more of it. */
  failure: string | undefined
  head: { status: number; statusText: string; headers: [string, string][] } | undefined
  /** The end of the body, as much of it as is shown. */
  text: string
  characters: number
  isJson: boolean
  isStream: boolean
  tookMs: number
  /** Whether the server wants a key and none was typed. */
  lacksKey: boolean
}

const SHOWN_CHARACTERS_MAX = 200_000

const nothing: AnswerProgress = {
  isEnded: false,
  isStopped: false,
  failure: undefined,
  head: undefined,
  text: '',
  characters: 0,
  isJson: false,
  isStream: false,
  tookMs: 0,
  lacksKey: false,
}

/** Sends a request, and tells of the answer while it comes, so that a stream can be watched. */
export async function read(
  { address, method, headers, body, hasKey }: SentRequest,
  { signal, tell }: { signal: AbortSignal; tell: (reading: AnswerProgress) => void },
): Promise<void> {
  const startedMs = performance.now()
  let reading = nothing
  const go = (more: Partial<AnswerProgress>): void => {
    reading = { ...reading, ...more, tookMs: performance.now() - startedMs }
    tell(reading)
  }
  go({})
  try {
    const sent = { method, headers, signal, cache: 'no-store' } as const
    const response = await fetch(address, body === undefined ? sent : { ...sent, body })
    const { status, statusText } = response
    const mediaType = (response.headers.get('content-type') ?? '').split(';')[0]?.trim() ?? ''
    go({
      head: { status, statusText, headers: [...response.headers] },
      isStream: mediaType === 'text/event-stream',
      lacksKey: status === 401 && !hasKey,
    })
    let text = ''
    let characters = 0
    for await (const piece of piecesOf(response)) {
      characters += piece.length
      text = (text + piece).slice(-SHOWN_CHARACTERS_MAX)
      go({ text, characters })
    }
    const json = mediaType.endsWith('json') && characters === text.length ? indented(text) : undefined
    go({ isEnded: true, text: json ?? text, isJson: json !== undefined })
  } catch (error) {
    go({ isEnded: true, ...(signal.aborted ? { isStopped: true } : { failure: explain(error) }) })
  }
}

async function* piecesOf({ body }: Response): AsyncGenerator<string, void> {
  if (body === null) return
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}

/** JSON as people read it; undefined where it is none, as in a body of many lines. */
function indented(text: string): string | undefined {
  try {
    return pretty(JSON.parse(text))
  } catch {
    return undefined
  }
}
