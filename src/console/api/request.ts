import { serviceUrl } from '../parts/service-url.js'
import type { Operation } from './document.js'

/** A body that the document shows as an example. */
export interface BodyChoice {
  label: string
  mediaType: string
  text: string
}

/** What a request is made of: the form changes it, the curl line shows it. */
export interface RequestDraft {
  /** Parameters by their names; empty where they are left out. */
  values: Readonly<Record<string, string>>
  choice: BodyChoice | undefined
  body: string
}

/** Examples of the bodies that an operation takes. */
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

/** A request as the document's examples have it. */
export function firstDraft(operation: Operation): RequestDraft {
  const [choice] = choicesOf(operation)
  const values = Object.fromEntries(
    operation.parameters.map(({ name, in: place, required, example }) => [
      name,
      place === 'path' || required === true ? String(example ?? '') : '',
    ]),
  )
  return { values, choice, body: choice?.text ?? '' }
}

/** The address that a request goes to. */
export function addressOf({ path, parameters }: Operation, { values }: RequestDraft): string {
  const filled = path.replace(/\{([^}]+)\}/g, (whole, name: string) =>
    values[name] ? encodeURIComponent(values[name]) : whole,
  )
  const query = new URLSearchParams()
  for (const { name, in: place } of parameters)
    if (place === 'query' && values[name]) query.set(name, values[name])
  return `${serviceUrl()}${filled}${query.size > 0 ? '?' : ''}${query}`
}

/** The headers of a request but its credential. */
export function headersOf({ parameters }: Operation, { values, choice }: RequestDraft): [string, string][] {
  const headers = parameters.flatMap(({ name, in: place }): [string, string][] =>
    place === 'header' && values[name] ? [[name, values[name]]] : [],
  )
  return choice === undefined ? headers : [...headers, ['Content-Type', choice.mediaType]]
}

/** A request as a line for a shell. It names a variable in place of the key. */
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

/** Whether an operation asks for a credential. */
export function needsKey(operation: Operation): boolean {
  return operation['x-scope'] !== 'none'
}

/** JSON as people read it. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** A word of a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
