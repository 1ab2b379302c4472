import type { Static, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { refuse, type Fault, type Refusal } from '../base/errors.js'
import { readJson } from '../strand/json.js'

/** Reads values of one schema. */
export interface Reader<T> {
  /** The value when it fits the schema; otherwise 400 with every fault. */
  value(value: unknown): { value: T } | Refusal
  /** The same for JSON bytes. */
  bytes(bytes: Uint8Array): { value: T } | Refusal
}

const FAULTS_MAX = 20
const DEPTH_MAX = 16
/** One more than any schema allows, so that too many items are still too many. */
const ITEMS_LOOKED_AT = 1_001

/**
 * Compiles a schema once, for the first value. The schema that validates is the one that the OpenAPI document shows.
 */
export function reader<S extends TSchema>(schema: S): Reader<Static<S>> {
  let compiled: Validator | undefined
  const value = (given: unknown): { value: Static<S> } | Refusal => {
    const validator = (compiled ??= Compile(schema))
    return validator.Check(given) ? { value: given as Static<S> } : refusalOf(validator, given)
  }
  return {
    value,
    bytes(bytes) {
      const parsed = readJson(bytes, DEPTH_MAX)
      return 'code' in parsed ? parsed : value(parsed.value)
    },
  }
}

function refusalOf(validator: Pick<Validator, 'Errors'>, given: unknown): Refusal {
  const faults: Fault[] = []
  const seen = new Set<string>()
  for (const error of validator.Errors(shortened(given))) {
    const missing = error.keyword === 'required' ? error.params.requiredProperties : undefined
    const pointers = missing?.map((name) => `${error.instancePath}/${name}`) ?? [error.instancePath]
    for (const pointer of pointers) {
      // Each place is named once, with its first fault.
      if (seen.has(pointer) || faults.length >= FAULTS_MAX) continue
      seen.add(pointer)
      const detail = missing === undefined ? capital(error.message) : 'Expected this member'
      faults.push({ pointer, code: 'validation_failed', detail })
    }
  }
  const [first] = faults
  const detail =
    first === undefined ? 'Expected another value' : `${first.detail} at ${first.pointer || 'the root'}`
  return refuse('validation_failed', detail, { faults })
}

/**
 * A value with its longest lists and objects cut off. Finding out what is wrong takes a hundred times as long as
 * finding out that something is, and does not stop early however many faults there are.
 */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, ITEMS_LOOKED_AT).map(shortened)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).slice(0, ITEMS_LOOKED_AT)
  return Object.fromEntries(members.map(([name, one]) => [name, shortened(one)]))
}

function capital(text: string): string {
  return `Value ${text}`
}
