import canonicalize from 'canonicalize'
import sodium from 'sodium-native'

/** What the first record of a strand follows. */
export const beginning = { seq: 0, hash: Buffer.alloc(sodium.crypto_hash_sha256_BYTES) }

/**
 * A record of a strand.
 * @typedef {object} ChainedRecord
 * @property {string} agent
 * @property {number} seq from 1 on, without a gap
 * @property {string} takenAt ISO 8601
 * @property {object} body
 * @property {Buffer} hash SHA-256 of the canonical JSON of agent, seq, time, body and the hash before
 * @property {Buffer} signature Ed25519, of the hash
 */

/** A new key pair. */
export function makeKeyPair() {
  const publicKey = Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES)
  const secretKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES)
  sodium.crypto_sign_keypair(publicKey, secretKey)
  return { publicKey, secretKey }
}

/**
 * The record that follows another one.
 * @param {{seq: number, hash: Buffer}} before
 * @param {{agent: string, body: object}} content
 * @param {Buffer} secretKey
 * @returns {ChainedRecord}
 */
export function follow(before, { agent, body }, secretKey) {
  const unsigned = { agent, seq: before.seq + 1, takenAt: new Date().toISOString(), body }
  const hash = hashOf(unsigned, before.hash)
  const signature = Buffer.alloc(sodium.crypto_sign_BYTES)
  sodium.crypto_sign_detached(signature, hash, secretKey)
  return { ...unsigned, hash, signature }
}

/**
 * Checks that records are a whole strand.
 * @param {ChainedRecord[]} records by seq
 * @param {Buffer} publicKey
 * @throws {Error} that names the first record that does not follow the one before
 */
export function verify(records, publicKey) {
  let before = beginning
  for (const record of records) {
    const isNext = record.seq === before.seq + 1 && record.hash.equals(hashOf(record, before.hash))
    if (!isNext || !sodium.crypto_sign_verify_detached(record.signature, record.hash, publicKey))
      throw new Error(`Record ${record.seq} of ${record.agent} does not follow record ${before.seq}`)
    before = record
  }
}

function hashOf({ agent, seq, takenAt, body }, before) {
  const hash = Buffer.alloc(sodium.crypto_hash_sha256_BYTES)
  const text = canonicalize({ agent, seq, taken_at: takenAt, body, before: before.toString('hex') })
  sodium.crypto_hash_sha256(hash, Buffer.from(text))
  return hash
}
