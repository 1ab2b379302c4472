import { pooledRandom } from '../base/random.js'
import { describeFaults } from '../settings/config.js'
import { restore } from '../data/backup/restore.js'
import type { BackupManifest } from '../wire/backup-manifest.js'
import { parseOnce } from '../settings/parse-once.js'
import { homeHint } from '../settings/setting.js'
import { exitCodes } from './exit-codes.js'
import { showUsage } from './read-options.js'
import { settingsOf } from './read-settings.js'
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
export async function restoreCommand(args: string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) return showUsage(USAGE, { help: true, fault: '' })
  const source = readSource(args)
  if (typeof source !== 'object') return showUsage(USAGE, { help: false, fault: source })
  const reading = settingsOf(source.dataDir)
  if (!reading.ok) {
    process.stderr.write(describeFaults(reading.faults))
    return exitCodes.configuration
  }
  const { dataDir, masterSeed } = reading.config
  const request = { source: source.path, dataDir, masterSeed, random: pooledRandom() }
  return runStoreCommand(
    { failed: 'The backup was not restored', niced: false },
    (work) => restore(request, work),
    (manifest) => describe(dataDir, manifest),
  )
}

function readSource(args: string[]): { path: string; dataDir: string | undefined } | string {
  try {
    const options = { 'data-dir': { type: 'string' } } as const
    const { values, positionals } = parseOnce({ args, options, allowPositionals: true })
    const [path, ...more] = positionals
    if (path === undefined || path === '' || more.length > 0) return 'Expected one DIR'
    if (path.startsWith('~')) return `Expected one DIR: ${homeHint}`
    return { path, dataDir: values['data-dir'] }
  } catch (error) {
    return error instanceof Error ? error.message : 'Expected DIR'
  }
}

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
