import type { TSchema } from 'typebox'
import type { MediaText } from '../../routes/route.js'
import type { Route } from '../../routes/routes.js'
import { documentedSchemas } from '../../../wire/documented.js'

/*
 * A schema is known by its JSON, not by its identity: Type.Optional makes a copy, which is still the same schema to
 * whoever reads the document. The routes have loaded every schema before the first is looked for.
 */
let known: ReadonlyMap<string, string> | undefined

/** The name of a schema under components/schemas; undefined when it has none. */
function nameOf(schema: unknown): string | undefined {
  known ??= new Map([...documentedSchemas].map(([name, { schema: one }]) => [JSON.stringify(one), name]))
  return known.get(JSON.stringify(schema))
}

/** A schema as it stands in the document: plain JSON Schema 2020-12, with a $ref for each one that has a name. */
export function schemaOf(schema: unknown): unknown {
  const name = nameOf(schema)
  return name === undefined ? bare(schema) : { $ref: `#/components/schemas/${name}` }
}

/** The schema itself written out, with a $ref in place of its named parts. */
function bare(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(schemaOf)
  if (typeof schema !== 'object' || schema === null) return schema
  const { properties, ...others } = { properties: undefined, ...schema }
  const shown = Object.entries(others).map(([key, value]) => [key, schemaOf(value)])
  if (typeof properties !== 'object' || properties === null) return Object.fromEntries(shown)
  const required = 'required' in schema && Array.isArray(schema.required) ? schema.required : []
  const members = Object.entries(properties).map(([name, member]) => [
    name,
    schemaOf(required.includes(name) ? member : unlessGiven(member)),
  ])
  return Object.fromEntries([...shown, ['properties', Object.fromEntries(members)]])
}

/**
 * A member that may be left out, with its default in words: makers of types take a member that has the keyword `default`
 * for one that is always there, and would ask for it in every body that is sent.
 */
function unlessGiven(member: unknown): unknown {
  if (typeof member !== 'object' || member === null || !('default' in member)) return member
  const { default: value, description, ...schema } = { description: undefined, ...member }
  const words = `\`${JSON.stringify(value)}\` unless given`
  return { ...schema, description: typeof description === 'string' ? `${description}; ${words}` : words }
}

/** A schema with examples of it: its own, or those given. */
export function jsonContent(schema: TSchema, examples?: Readonly<Record<string, unknown>>): unknown {
  const own = documentedSchemas.get(nameOf(schema) ?? '')?.examples
  const named = Object.entries(examples ?? own ?? {}).map(([name, value]) => [name, { value }])
  return { schema: schemaOf(schema), ...(named.length === 0 ? {} : { examples: Object.fromEntries(named) }) }
}

/** components/schemas: first those of the auth routes of the root namespace, each part by name. */
export function schemaComponents(routes: readonly Route[]): Record<string, unknown> {
  const auth = routes.filter((route) => route.kind === 'auth' && route.organism === undefined)
  // Agents' KeyRotated has stood there since before the auth routes had one of that name.
  const early = new Set(['KeyRotated', ...auth.flatMap(bodiesOf).map(nameOf)])
  const placed = (name: string): string => (early.has(name) ? '0' : '1') + name
  const sorted = [...documentedSchemas].toSorted(([left], [right]) => (placed(left) < placed(right) ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, { schema }]) => [name, bare(schema)]))
}

function bodiesOf({ docs }: Route): TSchema[] {
  return [docs.request, ...Object.values(docs.answers)].flatMap((body) =>
    body === undefined || isText(body) ? [] : [body],
  )
}

/** Whether a body is a text, and no JSON value of one schema. */
export function isText<T extends MediaText>(body: TSchema | T): body is T {
  return 'mediaType' in body
}
