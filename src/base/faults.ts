import { refuse, type Fault, type Refusal } from './errors.js'

/** Characters of a caller's name that an error shows; a name can be as long as the body. */
const NAME_CHARS_MAX = 64

/** The JSON pointer of a member (RFC 6901); a long name is shortened. */
export function pointerTo(parent: string, member: string): string {
  return `${parent}/${shortName(member).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** A name for an error text, shortened with an ellipsis. */
export function shortName(name: string): string {
  return name.length <= NAME_CHARS_MAX
    ? name
    : `${name.slice(0, NAME_CHARS_MAX).replace(/[\ud800-\udbff]$/, '')}…`
}

export function missingMember(parent: string, member: string): Fault {
  const detail = `Missing member "${member}"`
  return { pointer: pointerTo(parent, member), code: 'validation_failed', detail }
}

/** Refuses a request with all of its faults; the detail is that of the first. */
export function refuseAll(first: Fault, others: readonly Fault[]): Refusal {
  const code = others.every((fault) => fault.code === first.code) ? first.code : 'validation_failed'
  return refuse(code, first.detail, { faults: [first, ...others] })
}
