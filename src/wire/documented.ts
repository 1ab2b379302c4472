import type { TSchema } from 'typebox'
import { assert } from '../base/assert.js'

/** A schema that has a name in the OpenAPI document, with examples by name. */
export interface Documented {
  schema: TSchema
  examples: Readonly<Record<string, unknown>>
}

/** The schemas that have a name in the OpenAPI document; any other is written out where it is used. */
export const documentedSchemas = new Map<string, Documented>()

/**
 * Gives a schema its name in the OpenAPI document, where it is declared.
 * @param examples name → body, shown wherever the schema is a whole body; a test checks each one against the schema
 */
export function documented(name: string, schema: TSchema, examples: Documented['examples']): void {
  assert(!documentedSchemas.has(name), `Two schemas are named ${name}`)
  documentedSchemas.set(name, { schema, examples })
}

/** The same for schemas that are parts of bodies: name → schema. */
export function documentedParts(schemas: Readonly<Record<string, TSchema>>): void {
  for (const [name, schema] of Object.entries(schemas)) documented(name, schema, {})
}
