import { pooledRandom } from '../base/random.js'
import { restore } from '../data/backup/restore.js'
import type { BackupManifest } from '../wire/backup-manifest.js'
import { directoryFault } from './backup.js'
import { command } from './command.js'
import { configOf } from './read-settings.js'
import { runStoreCommand } from './store-command.js'

const USAGE = `Usage: strandfast restore DIR [--data-dir DIR]
Makes the data directory of --data-dir or the settings, which is absent or empty, of the backup in DIR, if every file of it is as its
manifest says and every strand verifies. Otherwise it says what is wrong and leaves nothing. A backup without the master
seed needs SERVICE_MASTER_SEED.
`

/**
 * Restores a backup (docs/OPERATIONS.md, Backups).
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
  { shards, created_at_ms: madeAtMs, heads_root: headsRoot }: BackupManifest,
): string {
  const records = shards.reduce((sum, shard) => sum + shard.records, 0)
  const agents = shards.reduce((sum, shard) => sum + shard.agents, 0)
  const lines = [
    `RESTORED ${records} records of ${agents} agents to ${dataDir}, as of ${new Date(madeAtMs).toISOString()}`,
    `heads root  ${headsRoot}`,
    'tokens      no token of a user, refresh token or link from before is good: users sign in again',
  ]
  return `${lines.join('\n')}\n`
}
