import type { TSchema } from 'typebox'
import type { MediaText } from '../../routes/route.js'
import type { Route } from '../../routes/routes.js'
import { documentedSchemas } from '../../wire/documented.js'

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
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, schemaOf(value)]))
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
