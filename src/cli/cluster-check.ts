import { hostUrls } from '../base/host-urls.js'
import { exitCodes, isHelp, showUsage } from './command.js'
import { printable } from './printable.js'
import { describeFaults } from '../settings/config.js'
import { postgresFileFaults } from '../settings/tls-files.js'
import { onStopSignal } from './stop-signals.js'

const USAGE = `Usage: strandfast cluster check URL
Checks whether a database can hold the log of a cluster. URL lists all its servers: postgres://user:password@host1,host2/name.
The check takes some seconds and puts load on the database. It writes to temporary tables, which it drops.
`

/**
 * Checks a database of any engine that speaks PostgreSQL's protocol (docs/adr/0044-cluster-log.md).
 * @returns the exit code: 0 no check failed, 1 a check failed, 78 wrong usage
 */
export async function clusterCheckCommand(args: string[]): Promise<number> {
  if (isHelp(args)) return showUsage(USAGE, { help: true, fault: '' })
  const [url, ...others] = args
  const urls = hostUrls(url ?? '')
  if (urls.length === 0 || others.length > 0)
    return showUsage(USAGE, { help: false, fault: 'Expected one URL: postgres://user@host1,host2/name' })
  const faults = postgresFileFaults('URL', url)
  if (faults.length > 0) {
    process.stderr.write(describeFaults(faults))
    return exitCodes.configuration
  }
  const { checkDatabase } = await import('../cluster/fitness/check.js')
  const counts = { ok: 0, warn: 0, fail: 0 }
  let isStopped = false
  // The loop ends after the current check, so that its tables are dropped.
  onStopSignal(() => (isStopped = true))
  for await (const { level, subject, detail } of checkDatabase(urls)) {
    counts[level] += 1
    process.stdout.write(`${level.padEnd(4)}  ${subject.padEnd(15)}  ${printable(detail)}\n`)
    if (isStopped) break
  }
  if (isStopped) {
    process.stdout.write('\nStopped before the checks were complete\n')
    return exitCodes.foundWrong
  }
  process.stdout.write(`\n${verdictOf(counts)}\n`)
  return counts.fail > 0 ? exitCodes.foundWrong : exitCodes.fine
}

function verdictOf({ warn, fail }: { warn: number; fail: number }): string {
  if (fail > 0) return 'A cluster on this database could lose or fork records: do not use it.'
  if (warn > 0) return 'A cluster can use this database. Read the warnings first.'
  return 'A cluster can use this database.'
}
