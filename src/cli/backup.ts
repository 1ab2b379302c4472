import { backUp } from '../data/backup/backup.js'
import { systemClock } from '../base/clock.js'
import { secretFiles, type StoreOutcome, type StoreWork } from '../data/backup/stores.js'
import type { BackupManifest } from '../wire/backup-manifest.js'
import { homeHint } from '../settings/setting.js'
import { command, exitCodes, fail } from './command.js'
import { configOf } from './read-settings.js'
import { StorePool } from '../dispatch/pools/store-pool.js'
import { describeError, printable } from './printable.js'
import { startProgress } from './progress.js'
import { interruptible } from './stop-signals.js'

const USAGE = `Usage: strandfast backup DIR [--no-secrets] [--data-dir DIR]
Copies the data directory (--data-dir or SERVICE_DATA_DIR) to DIR, which must be absent or empty. A server may keep running. Checks
every strand of the copy, then writes DIR/manifest.json. The copy includes ${secretFiles.join(', ')} if the data
directory has them, unless --no-secrets is given. Needs enough free space for the copy, and stops when the free space of
the data directory's disk comes close to SERVICE_MIN_FREE_BYTES. A DIR without manifest.json is not a backup.
`

/**
 * Makes a backup (docs/BACKUPS.md).
 * @returns the exit code: 0 made, 1 failed or the data is damaged, 78 wrong usage or settings
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

/**
 * @returns what is wrong with the arguments of a command that takes exactly one directory; undefined if
 * nothing is
 */
export function directoryFault(directory: string | undefined, more: readonly string[]): string | undefined {
  if (directory === undefined || directory === '' || more.length > 0) return 'Expected one DIR'
  return directory.startsWith('~') ? `Expected one DIR: ${homeHint}` : undefined
}

function describe(target: string, { shards, files, heads_root: headsRoot }: BackupManifest): string {
  const records = shards.reduce((sum, shard) => sum + shard.records, 0)
  const agents = shards.reduce((sum, shard) => sum + shard.agents, 0)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const hasSeed = files.some(({ path }) => path === 'master.seed')
  const lines = [
    `Backed up ${records} records of ${agents} agents to ${target}, ${bytes} bytes`,
    `heads root  ${headsRoot}`,
    `secrets     ${hasSeed ? 'includes the master seed: protect the copy like the seed itself' : 'no master seed: agents cannot write without it, so store it elsewhere'}`,
  ]
  return `${lines.join('\n')}\n`
}

/**
 * Runs a backup or a restore and shows its progress. A stop signal ends it cleanly.
 * @param command `failed` is the beginning of error lines; `niced` lowers the priority of the threads below a
 * running server's
 * @returns the exit code
 */
export async function runStoreCommand(
  { failed, niced }: { failed: string; niced: boolean },
  run: (work: StoreWork) => Promise<StoreOutcome>,
  describe: (manifest: Extract<StoreOutcome, { ok: true }>['manifest']) => string,
): Promise<number> {
  return interruptible(async (signal) => {
    const pool = new StorePool(niced)
    signal.addEventListener('abort', () => pool.stop())
    const progress = startProgress()
    try {
      const outcome = await run({ pool, show: progress.show, signal })
      progress.end()
      if (outcome.ok) {
        process.stdout.write(describe(outcome.manifest))
        return exitCodes.fine
      }
      process.stderr.write(outcome.details.map((detail) => `${failed}: ${printable(detail)}\n`).join(''))
      return outcome.because === 'usage' ? exitCodes.configuration : exitCodes.foundWrong
    } catch (error) {
      progress.end()
      return fail(`${failed}: ${describeError(error)}`)
    } finally {
      await pool.close()
    }
  })
}
