import { linkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { RandomBytes } from '../base/random.js'
import { distrust } from './trust.js'
import {
  isFileSystemError,
  makeDirectory,
  readIfThere,
  syncDirectory,
  writeDurably,
} from '../base/durable-file.js'
import { keyPairFromSeed, seedBytes } from '../strand/keys.js'

/** A license authority's 32-byte Ed25519 seed, or why it cannot be used. */
export type AuthorityReading = { ok: true; seed: Buffer } | { ok: false; detail: string }

/** The file with the seed of the license authority. */
export const authorityFile = 'license-authority.seed'

/** Whether a name in a data directory is that of the authority's seed, or of one that was being written. */
export function isAuthorityFile(name: string): boolean {
  return name === authorityFile || name.startsWith(`${authorityFile}.`)
}

/**
 * The seed of the license authority of a data directory, made when there is none (docs/OPERATIONS.md, Signing people
 * in). It needs no lock: a license can be issued while the server runs, or before its first start, and if two processes
 * make the seed at once, one wins.
 * @throws Error of the file system
 */
export function openAuthority(dataDir: string, random: RandomBytes): AuthorityReading {
  const distrusted = distrust(dataDir)
  if (distrusted !== undefined) return { ok: false, detail: distrusted }
  const kept = readAuthority(dataDir)
  if (kept !== undefined) return kept
  makeDirectory(dataDir)
  const draft = join(dataDir, `${authorityFile}.${process.pid}`)
  try {
    writeDurably(draft, `${Buffer.from(random(seedBytes)).toString('hex')}\n`)
    // Linked, not renamed: a rename would replace a seed that was made meanwhile.
    linkSync(draft, join(dataDir, authorityFile))
    syncDirectory(dataDir)
  } catch (error) {
    if (!isFileSystemError(error) || error.code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  return readAuthority(dataDir) ?? { ok: false, detail: `The file ${join(dataDir, authorityFile)} has gone` }
}

/** The public key of the authority of a data directory, 64 hex digits; undefined when it has no usable one. */
export function authorityPublicKey(dataDir: string): string | undefined {
  const authority = readAuthority(dataDir)
  return authority?.ok === true ? keyPairFromSeed(authority.seed).publicKey : undefined
}

function readAuthority(dataDir: string): AuthorityReading | undefined {
  const file = join(dataDir, authorityFile)
  const text = readIfThere(file)?.trim()
  if (text === undefined) return undefined
  if (/^[0-9a-f]{64}$/.test(text)) return { ok: true, seed: Buffer.from(text, 'hex') }
  return {
    ok: false,
    detail: `The file ${file} does not hold a license authority's seed: restore it from a backup`,
  }
}
