import { linkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { RandomBytes } from '../base/random.js'
import { distrust } from './trust.js'
import {
  isFileSystemError,
  makeDirectory,
  readIfExists,
  syncDirectory,
  writeDurably,
} from '../base/durable-file.js'
import { keyPairFromSeed, seedBytes } from '../strand/keys.js'

/** The 32-byte Ed25519 seed of a license authority, or why it cannot be used. */
export type AuthorityReading = { ok: true; seed: Buffer } | { ok: false; detail: string }

export const authorityFile = 'license-authority.seed'

/** Whether a file name is that of the authority's seed, or of an unfinished draft. */
export function isAuthorityFile(name: string): boolean {
  return name === authorityFile || name.startsWith(`${authorityFile}.`)
}

/**
 * Returns the seed of a data directory's license authority, and creates it if it does not exist
 * (docs/SIGN-IN.md). It needs no lock: a license can be issued while the server runs or before its first
 * start, and if two processes create the seed, one wins.
 * @throws Error of the file system
 */
export function openAuthority(dataDir: string, random: RandomBytes): AuthorityReading {
  const distrusted = distrust(dataDir)
  if (distrusted !== undefined) return { ok: false, detail: distrusted }
  const stored = readAuthority(dataDir)
  if (stored !== undefined) return stored
  makeDirectory(dataDir)
  const draft = join(dataDir, `${authorityFile}.${process.pid}`)
  try {
    writeDurably(draft, `${Buffer.from(random(seedBytes)).toString('hex')}\n`)
    // Link instead of rename, which would replace a seed that another process created in the meantime.
    linkSync(draft, join(dataDir, authorityFile))
    syncDirectory(dataDir)
  } catch (error) {
    if (!isFileSystemError(error) || error.code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  return (
    readAuthority(dataDir) ?? {
      ok: false,
      detail: `The file ${join(dataDir, authorityFile)} was removed while it was being created, try again`,
    }
  )
}

/** The public key of a data directory's authority, 64 hex digits; undefined if it has no usable seed. */
export function authorityPublicKey(dataDir: string): string | undefined {
  const authority = readAuthority(dataDir)
  return authority?.ok === true ? keyPairFromSeed(authority.seed).publicKey : undefined
}

function readAuthority(dataDir: string): AuthorityReading | undefined {
  const file = join(dataDir, authorityFile)
  const text = readIfExists(file)?.trim()
  if (text === undefined) return undefined
  if (/^[0-9a-f]{64}$/.test(text)) return { ok: true, seed: Buffer.from(text, 'hex') }
  return {
    ok: false,
    detail: `The file ${file} does not contain the seed of a license authority: restore it from a backup`,
  }
}
