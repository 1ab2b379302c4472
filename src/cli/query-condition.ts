import type { WhereCondition } from '../client/types.js'

/** Comparisons as they are written on a command line; the longer ones first. */
const signs = [
  ['>=', 'gte'],
  ['<=', 'lte'],
  ['!=', 'ne'],
  ['=', 'eq'],
  ['>', 'gt'],
  ['<', 'lt'],
] as const

/**
 * Reads a condition such as `celsius>20`, `sensor=roof`, `state in ["new","open"]`, `note` (it exists) or `!note` (it does
 * not). A value is JSON where it can be, otherwise text, which begins with no sign: `==5` and `=~x` are operators of other
 * languages, and would be compared as texts here.
 * @returns undefined where it is none
 */
export function parseCondition(text: string): WhereCondition | undefined {
  const among = /^([^\s=<>!]+) in (\[.*\])$/s.exec(text)
  if (among !== null) return { field: among[1] ?? '', op: 'in', value: valueOf(among[2] ?? '') }
  const [found] = signs
    .map(([sign, op]) => ({ sign, op, at: text.indexOf(sign) }))
    .filter(({ at }) => at > 0)
    // The first sign in the text; where two begin there, the longer.
    .sort((one, other) => one.at - other.at || other.sign.length - one.sign.length)
  if (found !== undefined) {
    const field = text.slice(0, found.at).trim()
    const value = text.slice(found.at + found.sign.length).trim()
    if (!/^[^\s=<>!]*[^\s=<>!~]$/.test(field) || /^[=<>!~]/.test(value)) return undefined
    return { field, op: found.op, value: valueOf(value) }
  }
  const there = /^(!?)([^\s=<>!]+)$/.exec(text)
  return there === null ? undefined : { field: there[2] ?? '', op: 'exists', value: there[1] === '' }
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
