import { createHmac } from 'node:crypto'
import { domainToASCII } from 'node:url'
import { hasIgnorable } from './shown-text.js'

/** HKDF info of the key for `emailHmac`, derived from the master seed. */
export const emailHmacInfo = 'strandfast/email-hmac/v1'

/** Bytes of an e-mail address in UTF-8 (RFC 5321 4.5.3.1.3, without the angle brackets). */
export const emailBytesMax = 254

/** Bytes of the part before the `@` (RFC 5321 4.5.3.1.1). */
const LOCAL_BYTES_MAX = 64

// Dot-atoms of RFC 5322 with letters, marks and digits of any script (RFC 6531). Quoted parts are refused:
// they are not used in practice, and can contain characters that break headers and lists.
const localPart = /^[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+(?:\.[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+)*$/u

// Checked before the conversion to ASCII, which cuts a domain at "/", "?" and "#", drops tabs and decodes
// "%2e".
const typedDomain = /^[\p{L}\p{M}\p{N}.-]+$/u

const asciiDomain =
  /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Normalizes an e-mail address: trimmed, NFC, lower case, the domain in ASCII. The result is stored, compared
 * and mailed to; the text as typed could reach a different mailbox, because letters such as the Kelvin sign
 * become ASCII letters. Addresses with invisible code points, without a dot in the domain, or with an IP
 * literal are refused.
 * @returns `undefined` if `text` is not an address of at most 254 bytes
 */
export function normalizeEmail(text: string): string | undefined {
  // NFC joins at most four units of UTF-16 into one, so that a longer text stays too long.
  if (text.length > emailBytesMax * 4) return undefined
  const folded = text.normalize('NFC').trim().toLowerCase().normalize('NFC')
  const at = folded.lastIndexOf('@')
  const local = folded.slice(0, at)
  const typed = folded.slice(at + 1)
  if (at < 1 || !localPart.test(local) || !typedDomain.test(typed) || hasIgnorable(folded)) return undefined
  const domain = domainToASCII(typed)
  if (!asciiDomain.test(domain) || Buffer.byteLength(local) > LOCAL_BYTES_MAX) return undefined
  const email = `${local}@${domain}`
  return Buffer.byteLength(email) > emailBytesMax ? undefined : email
}

/**
 * Identifies a mailbox in audit records without revealing it: HMAC-SHA256.
 * @param key 32 secret bytes of this server, without which an address could be guessed from its hash
 * @param email the result of `normalizeEmail`
 * @returns 64 hex digits
 */
export function emailHmac(key: Uint8Array, email: string): string {
  return createHmac('sha256', key).update(email).digest('hex')
}
