import { createHmac, timingSafeEqual } from 'node:crypto'
import { deriveSeed } from '../strand/keys.js'

/**
 * Lengths of credential ids in bytes, drawn with equal chance from these sixteen, so that each is as frequent as with
 * real authenticators: password managers and phones 16 and 20, platforms and browsers 32, security keys 48 and 64.
 */
const lengths = [16, 16, 16, 16, 16, 20, 20, 20, 32, 32, 32, 32, 32, 48, 48, 64] as const

/** The key of made-up credential ids, 32 bytes, derived from the master seed: the same after every restart. */
export function decoyKey(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, 'strandfast/passkey-decoy/v1')
}

/** The mailbox of a namespace for which ids are made up. */
export interface DecoyOwner {
  namespace: string
  /** As `normalizeEmail` gives it. */
  email: string
}

/**
 * Made-up credential ids, always the same for one mailbox. They stand among real ones so that a list shows neither
 * whether an account exists nor how many passkeys it has (docs/adr/0016-passkeys.md).
 * @returns base64url texts
 */
export function decoyIds(key: Uint8Array, { namespace, email }: DecoyOwner, count: number): string[] {
  return Array.from({ length: count }, (_, place) => {
    // No namespace or e-mail contains NUL.
    const chosen = createHmac('sha512', key).update(`id\0${namespace}\0${email}\0${place}`).digest()
    const length = lengths[(chosen[chosen.length - 1] ?? 0) % lengths.length] ?? 32
    const first = chosen.subarray(0, length / 2)
    return Buffer.concat([first, sealOf(key, namespace, first)]).toString('base64url')
  })
}

/**
 * Whether an id is made up. Registering one is refused like registering another user's; otherwise an attempt would show
 * which ids of a list are real. One that was made up in another namespace is as any other id of an authenticator there: only the
 * namespace that it stands in may know it. A real id is mistaken for a made-up one with a chance below 2^-63.
 */
export function isDecoy(key: Uint8Array, namespace: string, id: string): boolean {
  const bytes = Buffer.from(id, 'base64url')
  if (!lengths.some((length) => length === bytes.length)) return false
  const first = bytes.subarray(0, bytes.length / 2)
  return timingSafeEqual(bytes.subarray(bytes.length / 2), sealOf(key, namespace, first))
}

/** The second half of a made-up id, by which the server recognises it; without the key it looks random. */
function sealOf(key: Uint8Array, namespace: string, first: Uint8Array): Buffer {
  // The ids of the root namespace stay as they were before seals named the namespace.
  const place = namespace === '' ? 'seal\0' : `seal\0${namespace}\0`
  return createHmac('sha256', key).update(place).update(first).digest().subarray(0, first.length)
}
