import { type ApiDocument, follow, type Schema } from './document.js'

/** A row of a schema's table. */
export type SchemaRow = MemberRow | { kind: 'either'; text: string; depth: number }

/** A member of an object, or a parameter. */
export interface MemberRow {
  kind: 'member'
  name: string
  typeText: string
  words: string | undefined
  notes: Note[]
  /** Shown beside the name: required members of requests, optional members of responses. */
  mark: 'required' | 'may be absent' | undefined
  depth: number
}

/** A constraint of a value in addition to its type; `codes` are shown as code, separated by commas. */
export interface Note {
  text: string
  codes: string[]
}

interface Member {
  name: string
  schema: Schema
  needed: boolean
  described?: string | undefined
}

const NESTING_MAX = 6
const ANY_NAME = '(any name)'

/** Reads schemas of a document. In requests it marks required members, in responses optional ones. */
export class SchemaReader {
  readonly #api: ApiDocument
  readonly #isResponse: boolean

  constructor(api: ApiDocument, isResponse: boolean) {
    this.#api = api
    this.#isResponse = isResponse
  }

  /** The rows of a schema's members, nested members after their parents; empty if it has none. */
  rows(node: Schema, depth = 0): SchemaRow[] {
    const value = this.#merged(node)
    if (depth > NESTING_MAX) return []
    if (value.type === 'array') return this.rows(value.items ?? {}, depth)
    const variants = (variantsOf(value) ?? []).filter((one) => this.#hasMembers(one, depth))
    const [only] = variants
    if (only !== undefined && variants.length === 1) return this.rows(only, depth)
    if (variants.length > 1) {
      return variants.flatMap((one, index) => [
        { kind: 'either', text: `${index === 0 ? 'either' : 'or'} ${this.#variantName(one)}`, depth },
        ...this.rows(one, depth),
      ])
    }
    return this.#membersOf(value, depth).flatMap((member) => [
      this.row(member, depth),
      ...(this.#hasMembers(member.schema, depth) ? this.rows(member.schema, depth + 1) : []),
    ])
  }

  row({ name, schema, needed, described }: Member, depth: number): MemberRow {
    const { value } = follow(this.#api, schema)
    return {
      kind: 'member',
      name,
      typeText: this.typeText(schema),
      words: described ?? schema.description ?? value.description,
      notes: this.#notesOf(value),
      mark: this.#markOf(needed),
      depth,
    }
  }

  typeText(node: Schema): string {
    const { name, value } = follow(this.#api, node)
    const variants = variantsOf(value)
    if (variants !== undefined) {
      const isNamed = name !== undefined && variants.length > 2 && !variants.some(isNull)
      return isNamed ? name : [...new Set(variants.map((one) => this.typeText(one)))].join(' or ')
    }
    if ('const' in value) return JSON.stringify(value.const)
    if (value.enum !== undefined) return typeof value.enum[0]
    if (value.type === 'array') return `array of ${this.typeText(value.items ?? {})}`
    if (value.type === 'object' && name !== undefined) return name
    return value.type ?? 'any'
  }

  descriptionOf(node: Schema): string | undefined {
    return follow(this.#api, node).value.description
  }

  #membersOf(value: Schema, depth: number): Member[] {
    const named = Object.entries(value.properties ?? {}).map(([name, schema]) => ({
      name,
      schema,
      needed: value.required?.includes(name) === true,
    }))
    // A member with any name gets no mark: it is neither required nor absent.
    const others = Object.values(value.patternProperties ?? {}).map((schema) => ({
      name: ANY_NAME,
      schema,
      needed: this.#isResponse,
    }))
    return [...named, ...others.filter(({ schema }) => this.#hasMembers(schema, depth))]
  }

  #markOf(needed: boolean): MemberRow['mark'] {
    if (this.#isResponse) return needed ? undefined : 'may be absent'
    return needed ? 'required' : undefined
  }

  #notesOf(schema: Schema): Note[] {
    const { minimum, maximum, minLength, maxLength, minItems, maxItems } = schema
    const pattern =
      schema.pattern ??
      (variantsOf(schema) ?? [])
        .map((one) => follow(this.#api, one).value.pattern)
        .find((one) => one !== undefined)
    return [
      ...(schema.enum === undefined
        ? []
        : [{ text: 'one of', codes: schema.enum.map((one) => JSON.stringify(one)) }]),
      ...span(minimum, maximum, ''),
      ...span(minLength, maxLength, ' characters'),
      ...span(minItems, maxItems, ' items'),
      ...(schema.default === undefined ? [] : [{ text: 'default', codes: [JSON.stringify(schema.default)] }]),
      ...(pattern === undefined ? [] : [{ text: 'matches', codes: [pattern] }]),
    ]
  }

  #hasMembers(node: Schema, depth: number): boolean {
    const value = this.#merged(node)
    if (depth > NESTING_MAX) return false
    if (value.type === 'array') return this.#hasMembers(value.items ?? {}, depth + 1)
    const inside = [...(variantsOf(value) ?? []), ...Object.values(value.patternProperties ?? {})]
    return (
      Object.keys(value.properties ?? {}).length > 0 || inside.some((one) => this.#hasMembers(one, depth + 1))
    )
  }

  /** Merges the parts of allOf; later parts override earlier ones. */
  #merged(node: Schema): Schema {
    const { value } = follow(this.#api, node)
    if (value.allOf === undefined) return value
    const parts = value.allOf.map((part) => this.#merged(part))
    return parts.reduce<Schema>(
      (all, part) => ({ ...all, ...part, properties: joined(all.properties, part.properties) }),
      {},
    )
  }

  #variantName(node: Schema): string {
    const { name, value } = follow(this.#api, node)
    if (name !== undefined) return name
    return value.properties === undefined
      ? this.typeText(node)
      : `{${Object.keys(value.properties).join(', ')}}`
  }
}

function joined(
  earlier: Schema['properties'] = {},
  later: Schema['properties'] = {},
): Record<string, Schema> {
  const all = { ...earlier }
  for (const [name, schema] of Object.entries(later)) all[name] = { ...all[name], ...schema }
  return all
}

const isNull = (schema: Schema): boolean => schema.type === 'null'

const variantsOf = ({ oneOf, anyOf }: Schema): Schema[] | undefined => oneOf ?? anyOf

function span(low: number | undefined, high: number | undefined, unit: string): Note[] {
  if (low === undefined && high === undefined) return []
  if (high === undefined) return [{ text: `at least ${low}${unit}`, codes: [] }]
  return [{ text: low === undefined ? `at most ${high}${unit}` : `${low} to ${high}${unit}`, codes: [] }]
}
