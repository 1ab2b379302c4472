import { type KeyObject, createPrivateKey, createPublicKey } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { deriveSeed, keyPairFromSeed } from '../strand/keys.js'

/** A public key in the answer to `GET /v1/auth/jwks` (RFC 7517, RFC 8037). */
export interface PublicJwk {
  kty: 'OKP'
  crv: 'Ed25519'
  /** 32 bytes, base64url. */
  x: string
  kid: string
  alg: 'EdDSA'
  use: 'sig'
}

export interface VerifyKey {
  /** The RFC 7638 thumbprint of the key. */
  readonly kid: string
  readonly publicKey: KeyObject
}

/** A key to sign tokens with. Never logged or sent. */
export interface JwtKey extends VerifyKey {
  readonly publicJwk: PublicJwk
  readonly privateKey: KeyObject
  /** 32 bytes. */
  readonly seed: Buffer
}

/**
 * Derives the signing key of one namespace and epoch from the seed of its audit agent, by HKDF-SHA256
 * (docs/adr/0010-auth-state.md).
 * @param namespaceId empty for the root namespace
 * @param epoch the number of rotations of the key
 */
export async function jwtKey(agentSeed: Uint8Array, namespaceId: string, epoch: number): Promise<JwtKey> {
  // A namespace id contains no "/", so that two pairs never give the same info.
  return jwtKeyOfSeed(deriveSeed(agentSeed, `strandfast/jwt/v1/${namespaceId}/${epoch}`))
}

/** The signing key of a derived seed. */
export async function jwtKeyOfSeed(seed: Buffer): Promise<JwtKey> {
  const x = Buffer.from(keyPairFromSeed(seed).publicKey, 'hex').toString('base64url')
  const okp = { kty: 'OKP', crv: 'Ed25519', x } as const
  const kid = await calculateJwkThumbprint(okp)
  return {
    kid,
    seed,
    publicJwk: { ...okp, kid, alg: 'EdDSA', use: 'sig' },
    publicKey: createPublicKey({ format: 'jwk', key: okp }),
    privateKey: createPrivateKey({ format: 'jwk', key: { ...okp, d: seed.toString('base64url') } }),
  }
}
