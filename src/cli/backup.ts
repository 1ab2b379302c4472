import { backUp } from '../data/backup/backup.js'
import { systemClock } from '../base/clock.js'
import { describeFaults } from '../settings/config.js'
import { secretFiles } from '../data/backup/stores.js'
import type { BackupManifest } from '../wire/backup-manifest.js'
import { parseOnce } from '../settings/parse-once.js'
import { homeHint } from '../settings/setting.js'
import { exitCodes } from './exit-codes.js'
import { showUsage } from './read-options.js'
import { settingsOf } from './read-settings.js'
import { runStoreCommand } from './store-command.js'

const USAGE = `Usage: strandfast backup DIR [--no-secrets] [--data-dir DIR]
Copies the data directory of --data-dir or the settings to DIR, which is absent or empty, while a server may go on writing; checks every
strand of the copy, then writes DIR/manifest.json. The copy holds ${secretFiles.join(', ')} where the data
directory has them, but with --no-secrets. It begins only where there is room for the copy, and is given up when the disk
of the data directory comes near SERVICE_MIN_FREE_BYTES. A DIR without manifest.json is no backup.
`

/**
 * Makes a backup (docs/OPERATIONS.md, Backups).
 * @returns the exit code: 0 made, 1 failed or something is wrong with the data, 78 wrong usage or settings
 */
export async function backupCommand(args: string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) return showUsage(USAGE, { help: true, fault: '' })
  const asked = readAsked(args)
  if (typeof asked === 'string') return showUsage(USAGE, { help: false, fault: asked })
  const reading = settingsOf(asked.dataDir)
  if (!reading.ok) {
    process.stderr.write(describeFaults(reading.faults))
    return exitCodes.configuration
  }
  const { dataDir, freeBytesMin } = reading.config
  const { target, secrets } = asked
  const request = { dataDir, freeBytesMin, target, secrets, nowMs: systemClock() }
  return runStoreCommand(
    { failed: 'The backup failed', niced: true },
    (work) => backUp(request, work),
    (manifest) => describe(target, manifest),
  )
}

interface Asked {
  target: string
  secrets: boolean
  /** The data directory, if not that of the settings. */
  dataDir: string | undefined
}

function readAsked(args: string[]): Asked | string {
  try {
    const options = { 'no-secrets': { type: 'boolean' }, 'data-dir': { type: 'string' } } as const
    const { values, positionals } = parseOnce({ args, options, allowPositionals: true })
    const [target, ...more] = positionals
    if (target === undefined || target === '' || more.length > 0) return 'Expected one DIR'
    if (target.startsWith('~')) return `Expected one DIR: ${homeHint}`
    return { target, secrets: values['no-secrets'] !== true, dataDir: values['data-dir'] }
  } catch (error) {
    return error instanceof Error ? error.message : 'Expected DIR'
  }
}

function describe(target: string, { shards, files, heads_root: headsRoot }: BackupManifest): string {
  const records = shards.reduce((sum, shard) => sum + shard.records, 0)
  const agents = shards.reduce((sum, shard) => sum + shard.agents, 0)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const seeded = files.some(({ path }) => path === 'master.seed')
  const lines = [
    `BACKED UP ${records} records of ${agents} agents to ${target}, ${bytes} bytes`,
    `heads root  ${headsRoot}`,
    `secrets     ${seeded ? 'with the master seed: guard the copy as the seed itself' : 'without the master seed: without it no agent can write again, so keep it elsewhere'}`,
  ]
  return `${lines.join('\n')}\n`
}
