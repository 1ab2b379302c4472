import type { TSchema } from 'typebox'
import type { MediaText } from '../../routes/route.js'
import type { Route } from '../../routes/routes.js'
import { documentedSchemas } from '../../../wire/documented.js'

/*
 * Names of schemas by their JSON rather than by identity, because Type.Optional copies a schema. Filled at
 * the first lookup, when the routes have loaded every schema.
 */
let nameBySchema: ReadonlyMap<string, string> | undefined

function nameOf(schema: unknown): string | undefined {
  nameBySchema ??= new Map(
    [...documentedSchemas].map(([name, documented]) => [JSON.stringify(documented.schema), name]),
  )
  return nameBySchema.get(JSON.stringify(schema))
}

/** A schema as plain JSON Schema 2020-12, with a $ref for each named schema. */
export function schemaOf(schema: unknown): unknown {
  const name = nameOf(schema)
  return name === undefined ? bare(schema) : { $ref: `#/components/schemas/${name}` }
}

/** The schema itself, with a $ref for each of its named parts. */
function bare(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(schemaOf)
  if (typeof schema !== 'object' || schema === null) return schema
  const { properties, ...others } = { properties: undefined, ...schema }
  const shown = Object.entries(others).map(([key, value]) => [key, schemaOf(value)])
  if (typeof properties !== 'object' || properties === null) return Object.fromEntries(shown)
  const required = 'required' in schema && Array.isArray(schema.required) ? schema.required : []
  const members = Object.entries(properties).map(([name, member]) => [
    name,
    schemaOf(required.includes(name) ? member : defaultInWords(member)),
  ])
  return Object.fromEntries([...shown, ['properties', Object.fromEntries(members)]])
}

/**
 * An optional member, with its default in the description: type generators treat a member with the keyword
 * `default` as always present, and would require it in request bodies.
 */
function defaultInWords(member: unknown): unknown {
  if (typeof member !== 'object' || member === null || !('default' in member)) return member
  const { default: value, description, ...schema } = { description: undefined, ...member }
  const words = `default \`${JSON.stringify(value)}\``
  return { ...schema, description: typeof description === 'string' ? `${description}; ${words}` : words }
}

export function jsonContent(schema: TSchema, examples?: Readonly<Record<string, unknown>>): unknown {
  const own = documentedSchemas.get(nameOf(schema) ?? '')?.examples
  const named = Object.entries(examples ?? own ?? {}).map(([name, value]) => [name, { value }])
  return { schema: schemaOf(schema), ...(named.length === 0 ? {} : { examples: Object.fromEntries(named) }) }
}

/**
 * components/schemas: first the schemas of auth routes of the root namespace, then the others, each sorted by
 * name.
 */
export function schemaComponents(routes: readonly Route[]): Record<string, unknown> {
  const auth = routes.filter((route) => route.kind === 'auth' && route.organism === undefined)
  // KeyRotated of agents was listed here before the auth routes had a schema of that name.
  const listedFirst = new Set(['KeyRotated', ...auth.flatMap(bodiesOf).map(nameOf)])
  const sortKey = (name: string): string => (listedFirst.has(name) ? '0' : '1') + name
  const sorted = [...documentedSchemas].toSorted(([left], [right]) =>
    sortKey(left) < sortKey(right) ? -1 : 1,
  )
  return Object.fromEntries(sorted.map(([name, { schema }]) => [name, bare(schema)]))
}

function bodiesOf({ docs }: Route): TSchema[] {
  return [docs.request, ...Object.values(docs.answers)].flatMap((body) =>
    body === undefined || isText(body) ? [] : [body],
  )
}

/** Whether a body is text rather than a JSON value with one schema. */
export function isText<T extends MediaText>(body: TSchema | T): body is T {
  return 'mediaType' in body
}
