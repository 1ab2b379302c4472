import { pooledRandom } from '../base/random.js'
import { restore } from '../data/backup/restore.js'
import type { BackupManifest } from '../wire/backup-manifest.js'
import { directoryFault, runStoreCommand } from './backup.js'
import { command } from './command.js'
import { configOf } from './read-settings.js'

const USAGE = `Usage: strandfast restore DIR [--data-dir DIR]
Restores the backup in DIR to the data directory (--data-dir or SERVICE_DATA_DIR), which must be absent or empty. Checks every file
against the manifest, and every strand. If a check fails, reports what is wrong and removes the incomplete directory. A
backup without the master seed needs SERVICE_MASTER_SEED.
`

/**
 * Restores a backup (docs/BACKUPS.md).
 * @returns the exit code: 0 restored, 1 failed or the backup does not verify, 78 wrong usage or settings
 */
export const restoreCommand = command({
  usage: USAGE,
  options: { 'data-dir': { type: 'string' } },
  operands: true,
  read: ({ 'data-dir': dataDir }, [source, ...more]) =>
    directoryFault(source, more) ?? { source: source ?? '', dataDir },
  async run({ source, dataDir: given }) {
    const config = configOf(given)
    if (typeof config === 'number') return config
    const { dataDir, masterSeed } = config
    const request = { source, dataDir, masterSeed, random: pooledRandom() }
    return runStoreCommand(
      { failed: 'The backup was not restored', niced: false },
      (work) => restore(request, work),
      (manifest) => describe(dataDir, manifest),
    )
  },
})

function describe(
  dataDir: string,
  { shards, created_at_ms: createdAtMs, heads_root: headsRoot }: BackupManifest,
): string {
  const records = shards.reduce((sum, shard) => sum + shard.records, 0)
  const agents = shards.reduce((sum, shard) => sum + shard.agents, 0)
  const lines = [
    `Restored ${records} records of ${agents} agents to ${dataDir}, as of ${new Date(createdAtMs).toISOString()}`,
    `heads root  ${headsRoot}`,
    'tokens      all access tokens, refresh tokens and links from before are invalid: users must sign in again',
  ]
  return `${lines.join('\n')}\n`
}
