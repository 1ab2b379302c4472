import { Type, type Static } from 'typebox'
import { Hash, HlcText, UnixMs } from './primitives.js'
import { reader } from './validate.js'

/** The `format` of the manifest of a backup. */
export const backupFormat = 'strandfast-backup/v1'

const Count = Type.Integer({ minimum: 0 })

/** manifest.json of a backup, which is written last (docs/adr/0020-backup.md). */
const BackupManifest = Type.Object({
  format: Type.Literal(backupFormat),
  /** Version of the program that created it. */
  version: Type.String(),
  /** Start of the backup, Unix milliseconds. */
  created_at_ms: UnixMs,
  /** The data directory that was backed up. */
  source: Type.Object({ created_at_ms: UnixMs, master_seed_fingerprint: Hash }),
  /** In the order of the shards. */
  shards: Type.Array(Type.Object({ agents: Count, records: Count, last_hlc: HlcText }), {
    minItems: 1,
    maxItems: 16,
  }),
  /** All other files of the backup, by their paths in it. */
  files: Type.Array(Type.Object({ path: Type.String(), bytes: Count, sha256: Hash })),
  /** RFC 6962 root over the chain heads of all agents. */
  heads_root: Hash,
})
export type BackupManifest = Static<typeof BackupManifest>

const manifestReader = reader(BackupManifest)

/** Parses a manifest; undefined if it is invalid. */
export function parseBackupManifest(bytes: Uint8Array): BackupManifest | undefined {
  const read = manifestReader.bytes(bytes)
  return 'value' in read ? read.value : undefined
}

/** Renders a manifest. */
export function renderBackupManifest(manifest: BackupManifest): string {
  return `${JSON.stringify(manifest, undefined, 2)}\n`
}
