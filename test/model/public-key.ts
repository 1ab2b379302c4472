import { createPrivateKey, createPublicKey } from 'node:crypto'

/** The beginning of an Ed25519 seed in PKCS #8 (RFC 8410). */
const pkcs8Start = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The Ed25519 public key of a seed (RFC 8032), both hex. */
export function publicKeyOf(seedHex: string): string {
  const key = Buffer.concat([pkcs8Start, Buffer.from(seedHex, 'hex')])
  const { x = '' } = createPublicKey(createPrivateKey({ key, format: 'der', type: 'pkcs8' })).export({
    format: 'jwk',
  })
  return Buffer.from(x, 'base64url').toString('hex')
}
