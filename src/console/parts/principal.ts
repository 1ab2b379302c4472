import { keyDigits } from './format.js'

/** Who did something, as lists name them: by the id that the strand has. */
export function principalText(principal: string): string {
  if (principal === 'root') return 'Root key'
  if (principal === 'open') return 'Somebody without a key'
  const [kind, namespace, user] = principal.split(':')
  if (kind !== 'user' || user === undefined) return `Key …${keyDigits(principal)}`
  return namespace === '' ? `User ${user}` : `User ${user} of ${namespace}`
}
