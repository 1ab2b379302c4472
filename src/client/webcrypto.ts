import { fromHex, toHex } from '../proof/hex.js'
import type { JobsLater } from '../proof/job.js'

/**
 * Makes sure that the platform can check an export.
 * @throws Error naming what is missing
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

/** Computes the jobs of checks with WebCrypto; keeps the last imported key, as a strand seldom changes its key. */
export function webCryptoJobs(): JobsLater {
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
          owned(message),
        )
      } catch {
        // Platforms refuse a key that is not a point of the curve when it is imported, or when it is used.
        return false
      }
    },
  }
}

async function hash(bytes: Uint8Array): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', owned(bytes))))
}

/** Bytes that no thread shares, which WebCrypto requires. */
function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return isOwned(bytes) ? bytes : new Uint8Array(bytes)
}

function isOwned(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer
}
