import { refuse, type Fault, type Refusal } from './errors.js'

/** Characters that are kept of a name that a caller made up; a name can be as long as its body. */
const NAME_CHARS_MAX = 64

/** The pointer of a member (RFC 6901); a long name is cut off. */
export function pointerTo(parent: string, member: string): string {
  return `${parent}/${shortName(member).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** A name for a text that tells of it: its first characters, and an ellipsis where there were more. */
export function shortName(name: string): string {
  return name.length <= NAME_CHARS_MAX
    ? name
    : `${name.slice(0, NAME_CHARS_MAX).replace(/[\ud800-\udbff]$/, '')}…`
}

/** The fault of a member that is needed and not there. */
export function missingMember(parent: string, member: string): Fault {
  const detail = `Missing member "${member}"`
  return { pointer: pointerTo(parent, member), code: 'validation_failed', detail }
}

/** Refuses a request for all of its faults; the first is its detail. */
export function refuseAll(first: Fault, others: readonly Fault[]): Refusal {
  const code = others.every((fault) => fault.code === first.code) ? first.code : 'validation_failed'
  return refuse(code, first.detail, { faults: [first, ...others] })
}
