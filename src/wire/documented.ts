import type { TSchema } from 'typebox'
import { assert } from '../base/assert.js'

/** A schema with a name in the OpenAPI document, and its examples by name. */
export interface Documented {
  schema: TSchema
  examples: Readonly<Record<string, unknown>>
}

/** The schemas with a name in the OpenAPI document; others are inlined. */
export const documentedSchemas = new Map<string, Documented>()

/**
 * Registers a schema with its name in the OpenAPI document.
 * @param examples name → body, shown where the schema is a whole body; a test checks each one against the
 * schema
 */
export function documented(name: string, schema: TSchema, examples: Documented['examples']): void {
  assert(!documentedSchemas.has(name), `Two schemas are named ${name}`)
  documentedSchemas.set(name, { schema, examples })
}

/** Registers schemas that are parts of bodies: name → schema. */
export function documentedParts(schemas: Readonly<Record<string, TSchema>>): void {
  for (const [name, schema] of Object.entries(schemas)) documented(name, schema, {})
}
