import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Type, type Static } from 'typebox'
import { readIfExists, syncDirectory, writeDurably } from '../base/durable-file.js'
import type { BackupManifest } from '../wire/backup-manifest.js'
import { Hash, UnixMs } from '../wire/primitives.js'
import { reader } from '../wire/validate.js'

/** Facts about a restore. The next start records them on the audit strand and removes the file. */
export const restoredFile = 'restored.json'

const RestoredMarker = Type.Object({
  /** Random, so that an interrupted start does not record the same restore twice. */
  id: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  restored_at_ms: UnixMs,
  backup_made_at_ms: UnixMs,
  backup_version: Type.String(),
  heads_root: Hash,
})

export type RestoredMarker = Static<typeof RestoredMarker>

const markers = reader(RestoredMarker)

/** The part of a manifest that the marker needs. */
export type RestoredFrom = Pick<BackupManifest, 'created_at_ms' | 'version' | 'heads_root'>

/** Writes the marker to a directory that is being restored. @throws Error of the file system */
export function writeRestoredMarker(dataDir: string, manifest: RestoredFrom, nowMs: number): void {
  const marker: RestoredMarker = {
    id: randomBytes(16).toString('hex'),
    restored_at_ms: nowMs,
    backup_made_at_ms: manifest.created_at_ms,
    backup_version: manifest.version,
    heads_root: manifest.heads_root,
  }
  writeDurably(join(dataDir, restoredFile), `${JSON.stringify(marker)}\n`)
}

/** Reads the marker; undefined if it does not exist or cannot be read. */
export function readRestoredMarker(dataDir: string): RestoredMarker | undefined {
  const text = readIfExists(join(dataDir, restoredFile))
  if (text === undefined) return undefined
  const read = markers.bytes(Buffer.from(text))
  return 'value' in read ? read.value : undefined
}

/** Removes the marker, after the audit strand has the record. */
export function removeRestoredMarker(dataDir: string): void {
  rmSync(join(dataDir, restoredFile), { force: true })
  syncDirectory(dataDir)
}
