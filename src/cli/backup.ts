import { backUp } from '../data/backup/backup.js'
import { systemClock } from '../base/clock.js'
import { secretFiles } from '../data/backup/stores.js'
import type { BackupManifest } from '../wire/backup-manifest.js'
import { homeHint } from '../settings/setting.js'
import { command } from './command.js'
import { configOf } from './read-settings.js'
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
export const backupCommand = command({
  usage: USAGE,
  options: { 'no-secrets': { type: 'boolean' }, 'data-dir': { type: 'string' } },
  operands: true,
  read: (values, [target, ...more]) =>
    directoryFault(target, more) ?? {
      target: target ?? '',
      secrets: values['no-secrets'] !== true,
      dataDir: values['data-dir'],
    },
  async run({ target, secrets, dataDir: given }) {
    const config = configOf(given)
    if (typeof config === 'number') return config
    const { dataDir, freeBytesMin } = config
    const request = { dataDir, freeBytesMin, target, secrets, nowMs: systemClock() }
    return runStoreCommand(
      { failed: 'The backup failed', niced: true },
      (work) => backUp(request, work),
      (manifest) => describe(target, manifest),
    )
  },
})

/** What is wrong with the arguments of a command that takes one directory. */
export function directoryFault(directory: string | undefined, more: readonly string[]): string | undefined {
  if (directory === undefined || directory === '' || more.length > 0) return 'Expected one DIR'
  return directory.startsWith('~') ? `Expected one DIR: ${homeHint}` : undefined
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
