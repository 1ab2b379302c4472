import { explain } from '../parts/explain.js'
import { pretty } from './request.js'

export interface SentRequest {
  address: string
  method: string
  headers: Headers
  body: string | undefined
  /** Whether the user entered a key. */
  hasKey: boolean
}

/** The state of a response while it arrives. */
export interface ResponseProgress {
  isEnded: boolean
  isStopped: boolean
  /** Why the response is missing or incomplete. */
  failure: string | undefined
  head: { status: number; statusText: string; headers: [string, string][] } | undefined
  /** The end of the body, limited to `SHOWN_CHARACTERS_MAX`. */
  text: string
  characters: number
  isJson: boolean
  isStream: boolean
  tookMs: number
  /** Whether the server requires a key and the user entered none. */
  lacksKey: boolean
}

const SHOWN_CHARACTERS_MAX = 200_000

const nothing: ResponseProgress = {
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

/** Sends a request, and reports the response while it arrives, so that streams can be watched. */
export async function sendRequest(
  { address, method, headers, body, hasKey }: SentRequest,
  { signal, report }: { signal: AbortSignal; report: (progress: ResponseProgress) => void },
): Promise<void> {
  const startedMs = performance.now()
  let progress = nothing
  const update = (more: Partial<ResponseProgress>): void => {
    progress = { ...progress, ...more, tookMs: performance.now() - startedMs }
    report(progress)
  }
  update({})
  try {
    const sent = { method, headers, signal, cache: 'no-store' } as const
    const response = await fetch(address, body === undefined ? sent : { ...sent, body })
    const { status, statusText } = response
    const mediaType = (response.headers.get('content-type') ?? '').split(';')[0]?.trim() ?? ''
    update({
      head: { status, statusText, headers: [...response.headers] },
      isStream: mediaType === 'text/event-stream',
      lacksKey: status === 401 && !hasKey,
    })
    let text = ''
    let characters = 0
    for await (const piece of piecesOf(response)) {
      characters += piece.length
      text = (text + piece).slice(-SHOWN_CHARACTERS_MAX)
      update({ text, characters })
    }
    const json = mediaType.endsWith('json') && characters === text.length ? indented(text) : undefined
    update({ isEnded: true, text: json ?? text, isJson: json !== undefined })
  } catch (error) {
    update({ isEnded: true, ...(signal.aborted ? { isStopped: true } : { failure: explain(error) }) })
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

/** Indented JSON; undefined if the text is not a JSON document, for example NDJSON. */
function indented(text: string): string | undefined {
  try {
    return pretty(JSON.parse(text))
  } catch {
    return undefined
  }
}
