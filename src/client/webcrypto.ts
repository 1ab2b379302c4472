import { fromHex, toHex } from '../proof/hex.js'
import type { AsyncJobs } from '../proof/job.js'

/**
 * Checks that the platform has what the check of an export needs.
 * @throws Error that says what is missing
 */
export async function requireEd25519(): Promise<void> {
  if (globalThis.crypto?.subtle === undefined) {
    throw new Error(
      'Checking an export needs WebCrypto, which browsers offer on pages of https or localhost only',
    )
  }
  try {
    await crypto.subtle.generateKey({ name: 'Ed25519' }, false, ['sign', 'verify'])
  } catch (cause) {
    throw new Error('Checking an export needs Ed25519 in WebCrypto, which this platform does not have', {
      cause,
    })
  }
}

/**
 * Runs the jobs of checks with WebCrypto. Caches the last imported key, because a strand seldom changes its
 * key.
 */
export function webCryptoJobs(): AsyncJobs {
  let lastKey = ''
  let imported: Promise<CryptoKey> | undefined
  const keyOf = (publicKey: string): Promise<CryptoKey> => {
    if (imported === undefined || lastKey !== publicKey) {
      lastKey = publicKey
      imported = crypto.subtle.importKey('raw', fromHex(publicKey), 'Ed25519', false, ['verify'])
    }
    return imported
  }
  return {
    hash,
    node: (left, right) => hash(fromHex(`01${left}${right}`)),
    async verify({ publicKey, message, signature }) {
      try {
        return await crypto.subtle.verify(
          'Ed25519',
          await keyOf(publicKey),
          fromHex(signature),
          unshared(message),
        )
      } catch {
        // A key that is not a point on the curve is refused on import or on use, depending on the platform.
        return false
      }
    },
  }
}

async function hash(bytes: Uint8Array): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', unshared(bytes))))
}

/** Copies bytes in shared memory, which WebCrypto refuses. */
function unshared(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return isUnshared(bytes) ? bytes : new Uint8Array(bytes)
}

function isUnshared(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer
}

/** A new idempotency key. Browsers lack crypto.randomUUID() on pages of plain http, so it is not used. */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
