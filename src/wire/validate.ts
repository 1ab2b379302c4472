import type { Static, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import type { TLocalizedValidationError } from 'typebox/error'
import { refuse, type Fault, type Refusal } from '../base/errors.js'
import { missingMember, pointerTo } from '../base/faults.js'
import { limits } from '../base/limits/limits.js'
import { locateFault } from '../strand/json-fault.js'
import { readJson } from '../strand/json.js'

/** Reads values of one schema. */
export interface Reader<T> {
  /** The value if it matches the schema, else 400 with its faults. */
  value(value: unknown): { value: T } | Refusal
  /** Parses JSON bytes, then as `value`. */
  bytes(bytes: Uint8Array): { value: T } | Refusal
}

const DEPTH_MAX = 16
/** Characters of a pointer in a fault; a pointer can contain names that the caller made up. */
const POINTER_CHARS_MAX = 512
/** One more than any schema allows, so that a shortened list still has too many items. */
const ITEMS_EXAMINED_MAX = 1_001

/** Compiles a schema lazily. The same schema is shown in the OpenAPI document. */
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
      return 'code' in parsed ? locateFault(bytes, parsed) : value(parsed.value)
    },
  }
}

function refusalOf(validator: Pick<Validator, 'Errors'>, given: unknown): Refusal {
  const faults: Fault[] = []
  const seen = new Set<string>()
  for (const error of validator.Errors(shortened(given))) {
    for (const fault of faultsOf(error)) {
      // Each pointer has one fault, the first.
      if (seen.has(fault.pointer) || faults.length >= limits.faultsMax) continue
      seen.add(fault.pointer)
      faults.push(fault)
    }
  }
  const [first] = faults
  const detail =
    first === undefined
      ? 'The value does not match the schema'
      : `${first.detail} at ${first.pointer || 'the root'}`
  return refuse('validation_failed', detail, { faults })
}

/** Converts an error of the validator. The error `boolean` repeats unknown members and is dropped. */
function faultsOf(error: TLocalizedValidationError): Fault[] {
  const parent = error.instancePath.slice(0, POINTER_CHARS_MAX)
  const code = 'validation_failed'
  switch (error.keyword) {
    case 'required':
      return error.params.requiredProperties.map((name) => missingMember(parent, name))
    case 'additionalProperties':
      return error.params.additionalProperties.map((name) => ({
        pointer: pointerTo(parent, name),
        code,
        detail: 'Unknown member',
      }))
    case 'boolean':
      return []
    case 'enum':
      return [{ pointer: parent, code, detail: `Expected one of ${error.params.allowedValues.join(', ')}` }]
    default:
      return [{ pointer: parent, code, detail: `Value ${error.message}` }]
  }
}

/**
 * Truncates long lists and objects. Listing the faults takes a hundred times as long as the check, and does
 * not stop at a number of faults.
 */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, ITEMS_EXAMINED_MAX).map(shortened)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).slice(0, ITEMS_EXAMINED_MAX)
  return Object.fromEntries(members.map(([name, one]) => [name, shortened(one)]))
}
