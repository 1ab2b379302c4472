import { createHmac } from 'node:crypto'
import sodium from 'sodium-native'
import { assert } from '../base/assert.js'
import { asBuffer } from '../base/bytes.js'

/** The Ed25519 key pair of an agent (RFC 8032). */
export interface KeyPair {
  /** 64 hex digits. */
  publicKey: string
  /** 64 bytes in the form of libsodium: the seed, then the public key. Never logged or sent. */
  secretKey: Buffer
}

/** Bytes of an Ed25519 seed, and of a master seed. */
export const seedBytes = 32

/** Bytes of an Ed25519 signature. */
export const signatureBytes = 64

/** The RFC 8032 key pair of a 32-byte seed. */
export function keyPairFromSeed(seed: Uint8Array): KeyPair {
  assert(seed.length === seedBytes, 'an Ed25519 seed has 32 bytes')
  const publicKey = Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES)
  const secretKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES)
  sodium.crypto_sign_seed_keypair(publicKey, secretKey, asBuffer(seed))
  return { publicKey: publicKey.toString('hex'), secretKey }
}

/** Signs bytes. @returns 64 bytes from Node's buffer pool */
export function signBytes(secretKey: Buffer, message: Buffer): Buffer {
  const signature = Buffer.allocUnsafe(signatureBytes)
  sodium.crypto_sign_detached(signature, message, secretKey)
  return signature
}

/** Signs the UTF-8 bytes of a text. @returns 64 bytes from Node's buffer pool */
export function signText(secretKey: Buffer, text: string): Buffer {
  return signBytes(secretKey, Buffer.from(text))
}

/** Verifies a signature of 64 bytes. @param publicKey 64 hex digits */
export function verifyBytes(publicKey: string, message: Buffer, signature: Buffer): boolean {
  return sodium.crypto_sign_verify_detached(signature, message, Buffer.from(publicKey, 'hex'))
}

/**
 * Derives 32 bytes from the master seed by HKDF-SHA256 without salt (RFC 5869).
 * @param info the only purpose of the derived bytes
 */
export function deriveSeed(masterSeed: Uint8Array, info: string): Buffer {
  assert(masterSeed.length === seedBytes, 'a master seed has 32 bytes')
  // The output is one block of SHA-256, so that expanding is one HMAC.
  return createHmac('sha256', extracted(masterSeed)).update(info).update('\u0001').digest()
}

/** Caches the extract step of HKDF: a process has one master seed and derives a key for each agent. */
const last = { masterSeed: Buffer.alloc(seedBytes), extracted: extract(Buffer.alloc(seedBytes)) }

function extracted(masterSeed: Uint8Array): Buffer {
  if (!last.masterSeed.equals(masterSeed)) {
    last.extracted = extract(masterSeed)
    last.masterSeed.set(masterSeed)
  }
  return last.extracted
}

function extract(masterSeed: Uint8Array): Buffer {
  return createHmac('sha256', Buffer.alloc(seedBytes)).update(masterSeed).digest()
}

/** The derived seed of an agent that was created without one. */
export function agentSeed(masterSeed: Uint8Array, name: string): Buffer {
  return deriveSeed(masterSeed, `strandfast/agent-key/v1/${name}`)
}
