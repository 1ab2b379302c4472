import { type KeyObject, createPrivateKey, createPublicKey } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { deriveSeed, keyPairFromSeed } from '../strand/keys.js'

/** A public key as `GET /v1/auth/jwks` shows it (RFC 7517, RFC 8037). */
export interface PublicJwk {
  kty: 'OKP'
  crv: 'Ed25519'
  /** 32 bytes, base64url. */
  x: string
  kid: string
  alg: 'EdDSA'
  use: 'sig'
}

/** What is needed to check a token. */
export interface VerifyKey {
  /** The RFC 7638 thumbprint of the key. */
  readonly kid: string
  readonly publicKey: KeyObject
}

/** What is needed to sign tokens. Never logged, never sent. */
export interface JwtKey extends VerifyKey {
  readonly publicJwk: PublicJwk
  readonly privateKey: KeyObject
  /** 32 bytes. */
  readonly seed: Buffer
}

/**
 * Derives the key that signs the tokens of one namespace in one epoch from the seed of its audit agent, by HKDF-SHA256:
 * the same after every restart, another one in each namespace and epoch (docs/adr/0010-auth-state.md).
 * @param namespaceId empty for the root namespace
 * @param epoch counts the rotations of the key, from 0
 */
export async function jwtKey(agentSeed: Uint8Array, namespaceId: string, epoch: number): Promise<JwtKey> {
  // No id of a namespace contains a "/", so no two pairs give the same info.
  return jwtKeyOfSeed(deriveSeed(agentSeed, `strandfast/jwt/v1/${namespaceId}/${epoch}`))
}

/** The key of a seed that has been derived already. */
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
