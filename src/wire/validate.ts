import type { Static, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import type { TLocalizedValidationError } from 'typebox/error'
import { refuse, type Fault, type Refusal } from '../base/errors.js'
import { missingMember, pointerTo } from '../base/faults.js'
import { limits } from '../base/limits/limits.js'
import { sayWhere } from '../strand/json-fault.js'
import { readJson } from '../strand/json.js'

/** Reads values of one schema. */
export interface Reader<T> {
  /** The value when it fits the schema; otherwise 400 with every fault. */
  value(value: unknown): { value: T } | Refusal
  /** The same for JSON bytes. */
  bytes(bytes: Uint8Array): { value: T } | Refusal
}

const DEPTH_MAX = 16
/** Names of members that a caller makes up can stand in a pointer. */
const POINTER_CHARS_MAX = 512
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
      return 'code' in parsed ? sayWhere(bytes, parsed) : value(parsed.value)
    },
  }
}

function refusalOf(validator: Pick<Validator, 'Errors'>, given: unknown): Refusal {
  const faults: Fault[] = []
  const seen = new Set<string>()
  for (const error of validator.Errors(shortened(given))) {
    for (const fault of faultsOf(error)) {
      // Each place is named once, with its first fault.
      if (seen.has(fault.pointer) || faults.length >= limits.faultsMax) continue
      seen.add(fault.pointer)
      faults.push(fault)
    }
  }
  const [first] = faults
  const detail =
    first === undefined ? 'Expected another value' : `${first.detail} at ${first.pointer || 'the root'}`
  return refuse('validation_failed', detail, { faults })
}

/** What one error of the validator means; it tells of unknown members twice, of each and of their object. */
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
 * A value with its longest lists and objects cut off. Finding out what is wrong takes a hundred times as long as
 * finding out that something is, and does not stop early however many faults there are.
 */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, ITEMS_LOOKED_AT).map(shortened)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).slice(0, ITEMS_LOOKED_AT)
  return Object.fromEntries(members.map(([name, one]) => [name, shortened(one)]))
}
