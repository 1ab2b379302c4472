import { StorePool } from '../dispatch/pools/store-pool.js'
import type { StoreOutcome, StoreWork } from '../data/backup/stores.js'
import { fail, exitCodes } from './command.js'
import { describeError, printable } from './printable.js'
import { startProgress } from './progress.js'
import { interruptible } from './stop-signals.js'

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
