import { randomBytes } from 'node:crypto'
import { workerData } from 'node:worker_threads'
import { type Options, hashSync, parseOptions, verifySync } from '@node-rs/argon2'
import { assert } from '../src/base/assert.js'
import {
  isPasswordSettings,
  type HashTask,
  type Verification,
  type VerifyTask,
} from '../src/protocol/password-tasks.js'

/*
 * Password hashing, in a niced thread of the pool. It uses the synchronous calls, because the asynchronous
 * ones would block libuv's four threads, which Node needs for other background work.
 */

/** argon2id, set explicitly so that new defaults of the library have no effect. Memory is in KiB. */
const parameters = {
  algorithm: 2,
  version: 1,
  memoryCost: 19_456,
  timeCost: 2,
  parallelism: 1,
  outputLen: 32,
}

const SALT_BYTES = 16

/**
 * Compared with a password if there is no stored hash. The comparison costs the same, and no password
 * matches.
 */
const dummy = dummyHash()

/** Does nothing. Its result shows the pool that a thread could be started. */
export function begin(): void {}

/** @returns the hash with its salt and parameters, in the PHC string format */
export function hashPassword({ password }: HashTask): string {
  return hashSync(canonicalPassword(password), withPepper())
}

/**
 * Compares a password with a stored hash, or with a dummy of the same cost if there is none. A matching
 * password is hashed again if the stored hash is weaker than the current parameters.
 * @throws Error if `encoded` is not an argon2 hash
 */
export function verifyPassword({ password, encoded }: VerifyTask): Verification {
  const matches = verifySync(encoded ?? dummy, canonicalPassword(password), withPepper())
  if (!matches || encoded === undefined) return { matches: false }
  return needsRehash(encoded) ? { matches, rehashed: hashPassword({ password }) } : { matches }
}

/**
 * Whether a hash is weaker than the current parameters.
 * @throws Error if `encoded` is not an argon2 hash
 */
export function needsRehash(encoded: string): boolean {
  const stored = parseOptions(encoded)
  return (
    stored.algorithm !== parameters.algorithm ||
    stored.version !== parameters.version ||
    stored.memoryCost < parameters.memoryCost ||
    stored.timeCost < parameters.timeCost ||
    stored.outputLen < parameters.outputLen
  )
}

/** A well-formed hash with the current parameters that matches no password. */
export function dummyHash(): string {
  const { memoryCost, timeCost, parallelism, outputLen } = parameters
  const text = (bytes: number) => randomBytes(bytes).toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${text(SALT_BYTES)}$${text(outputLen)}`
}

/**
 * Normalizes a password, because two keyboards can produce different code points for it (NIST SP 800-63B,
 * 3.1.1.2).
 */
function canonicalPassword(password: string): string {
  return password.normalize('NFKC')
}

function withPepper(): Options {
  const settings: unknown = workerData
  assert(isPasswordSettings(settings), 'a password thread receives its pepper')
  return { ...parameters, secret: settings.pepper }
}
