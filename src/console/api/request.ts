import { serviceUrl } from '../parts/service-url.js'
import type { ExampleAgent } from './context.js'
import type { Operation } from './document.js'
import { explain } from '../parts/explain.js'

/** An example body of the document. */
interface BodyChoice {
  label: string
  mediaType: string
  text: string
}

/** A request during editing, shared by the form and the curl line. */
export interface RequestDraft {
  /** Parameters by name; omitted parameters are empty. */
  values: Readonly<Record<string, string>>
  choice: BodyChoice | undefined
  body: string
}

/** The example bodies of an operation. @param existing an agent for those that only append */
export function choicesOf(operation: Operation, existing: ExampleAgent | undefined): BodyChoice[] {
  const { requestBody } = operation
  const agent = isHarmless(operation) ? (existing?.agent ?? DOCUMENTED_AGENT) : DOCUMENTED_AGENT
  const textOf = (text: string): string => text.replaceAll(`"${DOCUMENTED_AGENT}"`, () => `"${agent}"`)
  return Object.entries(requestBody?.content ?? {}).flatMap(([mediaType, { example, examples }]) => {
    if (example !== undefined) return [{ mediaType, label: mediaType, text: textOf(String(example)) }]
    const all = Object.entries(examples ?? { body: { value: {} } })
    return all.map(([name, { value }]) => ({
      mediaType,
      label: all.length > 1 ? name : mediaType,
      text: textOf(pretty(value)),
    }))
  })
}

const DOCUMENTED_AGENT = 'sensors'

/**
 * The initial request, with the examples of the document. Requests that only read or append use an agent that
 * exists. Others keep the documented one, so that Send changes or destroys nothing by mistake.
 */
export function firstDraft(operation: Operation, existing: ExampleAgent | undefined): RequestDraft {
  const [choice] = choicesOf(operation, existing)
  const used = isHarmless(operation) ? existing : undefined
  const values = operation.parameters.map(({ name, in: location, required, example }) => {
    const isNeeded = location === 'path' || required === true
    const isStrand = name === 'agent' && operation.path.startsWith('/v1/strand/')
    if (used !== undefined && ((isNeeded && example === DOCUMENTED_AGENT) || isStrand))
      return [name, used.agent]
    if (used !== undefined && isNeeded && name === 'hash') return [name, used.hash]
    return [name, isNeeded ? String(example ?? '') : '']
  })
  return { values: Object.fromEntries(values), choice, body: choice?.text ?? '' }
}

const harmlessScopes: ReadonlySet<string> = new Set(['records:read', 'records:write', 'ingest'])

function isHarmless({ method, 'x-scope': scope }: Operation): boolean {
  return method === 'get' || (method === 'post' && harmlessScopes.has(scope))
}

export function addressOf({ path, parameters }: Operation, { values }: RequestDraft): string {
  const filled = path.replace(/\{([^}]+)\}/g, (whole, name: string) =>
    values[name] ? encodeURIComponent(values[name]) : whole,
  )
  const query = new URLSearchParams()
  for (const { name, in: location } of parameters)
    if (location === 'query' && values[name]) query.set(name, values[name])
  return `${serviceUrl()}${filled}${query.size > 0 ? '?' : ''}${query}`
}

/** The headers of a request without its credential. */
export function headersOf({ parameters }: Operation, { values, choice }: RequestDraft): [string, string][] {
  const headers = parameters.flatMap(({ name, in: location }): [string, string][] =>
    location === 'header' && values[name] ? [[name, values[name]]] : [],
  )
  return choice === undefined ? headers : [...headers, ['Content-Type', choice.mediaType]]
}

/** A request as a curl command. The key is a shell variable. */
export function curlText(operation: Operation, draft: RequestDraft): string {
  const { method, responses } = operation
  const { choice, body } = draft
  const isStream = responses['200']?.content?.['text/event-stream'] !== undefined
  const verb = method === 'get' ? '' : ` -X ${method.toUpperCase()}`
  const lines = [`curl${isStream ? ' -N' : ''}${verb} ${quoted(addressOf(operation, draft))}`]
  if (needsKey(operation)) lines.push('-H "Authorization: Bearer $STRANDFAST_KEY"')
  for (const [name, value] of headersOf(operation, draft)) lines.push(`-H ${quoted(`${name}: ${value}`)}`)
  if (choice !== undefined)
    lines.push(`${choice.mediaType === 'application/json' ? '-d' : '--data-binary'} ${quoted(body)}`)
  return lines.join(' \\\n  ')
}

/** Whether an operation requires a credential. */
export function needsKey(operation: Operation): boolean {
  return operation['x-scope'] !== 'none'
}

/** Indented JSON. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** Quotes a word for a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

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
