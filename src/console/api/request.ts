import { serviceUrl } from '../parts/service-url.js'
import type { Operation } from './document.js'

/** An example body of the document. */
export interface BodyChoice {
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

/** The example bodies of an operation. */
export function choicesOf({ requestBody }: Operation): BodyChoice[] {
  return Object.entries(requestBody?.content ?? {}).flatMap(([mediaType, { example, examples }]) => {
    if (example !== undefined) return [{ mediaType, label: mediaType, text: String(example) }]
    const all = Object.entries(examples ?? { body: { value: {} } })
    return all.map(([name, { value }]) => ({
      mediaType,
      label: all.length > 1 ? name : mediaType,
      text: pretty(value),
    }))
  })
}

/** The initial request, with the examples of the document. */
export function firstDraft(operation: Operation): RequestDraft {
  const [choice] = choicesOf(operation)
  const values = Object.fromEntries(
    operation.parameters.map(({ name, in: location, required, example }) => [
      name,
      location === 'path' || required === true ? String(example ?? '') : '',
    ]),
  )
  return { values, choice, body: choice?.text ?? '' }
}

/** The URL of a request. */
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
