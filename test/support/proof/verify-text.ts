import { verifyBytes } from '../../../src/strand/keys.js'

/** Verifies a signature over the UTF-8 bytes of `text`; false if the key or the signature is malformed. */
export function verifyText(publicKey: string, text: string, signature: Uint8Array): boolean {
  if (signature.length !== 64 || !/^[0-9a-f]{64}$/.test(publicKey)) return false
  return verifyBytes(publicKey, Buffer.from(text), Buffer.from(signature))
}
