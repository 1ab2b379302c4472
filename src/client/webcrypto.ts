/** Bytes as WebCrypto takes them. */
export type Bytes = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()

/**
 * Makes sure that the platform can check what an export holds.
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

/** UTF-8 bytes of a text. */
export function utf8(text: string): Bytes {
  return encoder.encode(text)
}

/** Bytes of lower-case hex digits, which the caller has checked. */
export function fromHex(hex: string): Bytes {
  return Uint8Array.from({ length: hex.length / 2 }, (_, index) =>
    Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16),
  )
}

/** Bytes as lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  let hex = ''
  for (const byte of bytes) hex += byte.toString(16).padStart(2, '0')
  return hex
}

/** SHA-256 of all parts, one after another. */
export async function sha256(...parts: Uint8Array[]): Promise<Bytes> {
  const joined = new Uint8Array(parts.reduce((total, part) => total + part.length, 0))
  let offset = 0
  for (const part of parts) {
    joined.set(part, offset)
    offset += part.length
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', joined))
}

/** Checks Ed25519 signatures; keeps the last key imported, as a strand seldom changes its own. */
export class SignatureCheck {
  #publicKey = ''
  #imported: Promise<CryptoKey> | undefined

  /** Whether `signature` is one by this key over the UTF-8 bytes of `text`. A malformed key or signature is not. */
  async verifies(publicKey: string, text: string, signature: Bytes): Promise<boolean> {
    if (signature.length !== 64 || !/^[0-9a-f]{64}$/.test(publicKey)) return false
    try {
      return await crypto.subtle.verify('Ed25519', await this.#key(publicKey), signature, utf8(text))
    } catch {
      // Platforms refuse a key that is no point of the curve when it is imported, or when it is used.
      return false
    }
  }

  #key(publicKey: string): Promise<CryptoKey> {
    if (this.#imported === undefined || this.#publicKey !== publicKey) {
      this.#publicKey = publicKey
      this.#imported = crypto.subtle.importKey('raw', fromHex(publicKey), 'Ed25519', false, ['verify'])
    }
    return this.#imported
  }
}
