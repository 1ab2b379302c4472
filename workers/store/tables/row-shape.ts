import { fields, isText, listOf, oneOf, optional, textUpTo, type Check } from '../../../src/base/shape.js'
import { policyActions, type Policy } from '../../../src/auth/row-policy.js'
import { jsonOf, seqMax } from './tables.js'

/*
 * Rows are written by this program, but a data directory can be changed or come from elsewhere. So a row is
 * checked when it is read: an invalid one fails the command that needs it, and nothing else.
 */

/** A row that this program did not write. */
export class InvalidRow extends Error {
  /** Its table and key. */
  readonly row: string

  constructor(row: string) {
    super(`The row ${row} is invalid: restore the data directory from a backup`)
    this.row = row
  }
}

/** The value of a row. @param row its table and key @throws InvalidRow */
export function checkedRow<Row>(row: string, bytes: Uint8Array, check: Check<Row>): Row {
  const value = jsonOf(bytes)
  if (!check(value)) throw new InvalidRow(row)
  return value
}

/** A number that fits the keys of the store: a seq or a time. */
export const isKeyNumber: Check<number> = (value): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= seqMax

/** A text that fits a key of the store, in UTF-8 and with others beside it. */
export const isKeyText = textUpTo(512)

/** 32 bytes in hex: a hash or a public key. */
export const isHash: Check<string> = (value): value is string => isText(value) && /^[0-9a-f]{64}$/.test(value)

/** Numbers by name. */
export const isCounts: Check<Record<string, number>> = (value): value is Record<string, number> =>
  isObject(value) && Object.values(value).every(isKeyNumber)

export const isObject: Check<Record<string, unknown>> = (value): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isPolicy = fields({
  actions: listOf(oneOf(...policyActions)),
  conditions: listOf(fields({ field: isText, op: isText })),
  types: optional(listOf(isText)),
})

export const isPolicies: Check<Policy[]> = (value): value is Policy[] => listOf(isPolicy)(value)
