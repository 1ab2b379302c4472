import { serviceUrl } from '../parts/service-url.js'

/** A reference, or the object itself. */
export type Ref<T> = T & { $ref?: string }

/** A JSON schema with the keywords that the server's document uses. */
export interface Schema {
  $ref?: string
  type?: string
  description?: string
  const?: unknown
  enum?: unknown[]
  default?: unknown
  pattern?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  items?: Schema
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  required?: string[]
  allOf?: Schema[]
  anyOf?: Schema[]
  oneOf?: Schema[]
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  example?: unknown
  schema: Schema
}

/** The body of a request or a response. */
export interface Media {
  schema: Schema
  example?: unknown
  examples?: Record<string, { value: unknown }>
}

export interface ResponseOf {
  description: string
  content?: Record<string, Media>
}

interface DocumentedOperation {
  operationId: string
  summary: string
  tags?: string[]
  parameters?: Ref<Parameter>[]
  requestBody?: { description?: string; content: Record<string, Media> }
  responses: Record<string, Ref<ResponseOf>>
  'x-scope': string
  /** The operation of the same form that is shown instead of this one. */
  'x-twin-of'?: string
}

/** An OpenAPI 3.1 document, limited to the members that the server's document uses. */
export interface ApiDocument {
  info: { title: string; version: string; summary?: string; description?: string }
  tags: { name: string; description?: string }[]
  paths: Record<string, Partial<Record<Method, DocumentedOperation>>>
  components: { securitySchemes: Record<string, { type: string; name?: string; description?: string }> }
  'x-error-catalogue': { code: string; status: number; title: string }[]
}

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const

type Method = (typeof methods)[number]

/** An operation with resolved references. */
export interface Operation extends Omit<DocumentedOperation, 'parameters' | 'responses'> {
  method: Method
  path: string
  tag: string
  parameters: Parameter[]
  responses: Record<string, ResponseOf>
}

export interface OperationGroup {
  name: string
  description: string | undefined
  operations: Operation[]
}

/** Reads the OpenAPI document of this server. @throws Error if there is none */
export async function readDocument(signal: AbortSignal): Promise<ApiDocument> {
  const response = await fetch(`${serviceUrl()}/openapi.json`, { signal })
  if (!response.ok) throw new Error(`Could not read the OpenAPI document: status ${response.status}`)
  const read = await response.json()
  if (!isDocument(read)) throw new Error('The response is not the OpenAPI document of a Strandfast server')
  return read
}

/** A shallow check, because the server generates its document from the schemas that it validates with. */
function isDocument(read: unknown): read is ApiDocument {
  return (
    typeof read === 'object' &&
    read !== null &&
    ['info', 'tags', 'paths', 'components', 'x-error-catalogue'].every((name) => name in read)
  )
}

/** The operations to show, in the order of the document. */
export function operationsOf(api: ApiDocument): Operation[] {
  return Object.entries(api.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method]
      if (operation === undefined || operation['x-twin-of'] !== undefined) return []
      const parameters = (operation.parameters ?? []).map((one) => follow(api, one).value)
      const responses = Object.fromEntries(
        Object.entries(operation.responses).map(([status, one]) => [status, follow(api, one).value]),
      )
      return [{ ...operation, method, path, parameters, responses, tag: operation.tags?.[0] ?? 'Other' }]
    }),
  )
}

/** The operations grouped by tag, in the order of the document's tags. */
export function groupsOf(api: ApiDocument, operations: readonly Operation[]): OperationGroup[] {
  const names = new Set([...api.tags.map(({ name }) => name), ...operations.map(({ tag }) => tag)])
  return [...names].map((name) => ({
    name,
    description: api.tags.find((tag) => tag.name === name)?.description,
    operations: operations.filter(({ tag }) => tag === name),
  }))
}

const REFS_MAX = 9

/** Resolves `$ref`. @returns the target, and the name of the last reference */
export function follow<T extends object>(
  api: ApiDocument,
  node: Ref<T>,
): { name: string | undefined; value: T } {
  let name: string | undefined
  let at: Ref<T> = node
  for (let steps = 0; at.$ref !== undefined && steps < REFS_MAX; steps += 1) {
    const parts = at.$ref.slice(2).split('/').map(unescaped)
    name = parts.at(-1)
    let found: unknown = api
    for (const part of parts)
      found = typeof found === 'object' && found !== null ? Reflect.get(found, part) : found
    if (!isOf<T>(found)) break
    at = found
  }
  return { name, value: at }
}

/** Trusts the type of a reference's target, because the server's tests validate the document. */
function isOf<T>(found: unknown): found is T {
  return typeof found === 'object' && found !== null
}

/** Unescapes a part of a JSON Pointer (RFC 6901). */
function unescaped(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}
