import { hostUrls } from '../base/host-urls.js'
import { exitCodes, showUsage } from './command.js'
import { printable } from './printable.js'
import { onStopSignal } from './stop-signals.js'

const USAGE = `Usage: strandfast cluster check URL
Shows whether a database can hold the log of a cluster: postgres://user:password@host1,host2/name, with all its servers.
It writes to tables of its own, which it drops; it takes some seconds and loads the database meanwhile.
`

/**
 * Checks a database, of whatever engine that speaks PostgreSQL's protocol (docs/adr/0044-cluster-log.md).
 * @returns the exit code: 0 without a failed check, else 1; 78 wrong usage
 */
export async function clusterCheckCommand(args: string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) return showUsage(USAGE, { help: true, fault: '' })
  const [url, ...others] = args
  const urls = hostUrls(url ?? '')
  if (urls.length === 0 || others.length > 0)
    return showUsage(USAGE, { help: false, fault: 'Expected one address: postgres://user@host1,host2/name' })
  const { checkDatabase } = await import('../cluster/fitness/check.js')
  const counts = { ok: 0, warn: 0, fail: 0 }
  let isStopped = false
  // Not at once: what it has made is to be dropped.
  onStopSignal(() => (isStopped = true))
  for await (const { level, subject, detail } of checkDatabase(urls)) {
    counts[level] += 1
    process.stdout.write(`${level.padEnd(4)}  ${subject.padEnd(15)}  ${printable(detail)}\n`)
    if (isStopped) break
  }
  if (isStopped) {
    process.stdout.write('\nStopped before all was checked\n')
    return exitCodes.foundWrong
  }
  process.stdout.write(`\n${verdictOf(counts)}\n`)
  return counts.fail > 0 ? exitCodes.foundWrong : exitCodes.fine
}

function verdictOf({ warn, fail }: { warn: number; fail: number }): string {
  if (fail > 0) return 'A cluster on this database could lose or fork records: do not use it.'
  if (warn > 0) return 'It does what a cluster needs. Look at the warnings before you trust records to it.'
  return 'It does what a cluster needs.'
}
