import { limits } from '../../base/limits/limits.js'
import {
  codesCheck,
  countersCheck,
  transactionsCheck,
  visibilityCheck,
  warningsCheck,
} from './check-answers.js'
import { CheckBench, type DatabaseCheck, fine, type CheckResult, wrong } from './check-bench.js'
import { bytesCheck, chainCheck, cutCheck, racingCheck } from './check-log.js'
import { serversCheck, sessionsCheck, settingsCheck, standbysCheck, versionCheck } from './check-server.js'

/** What one check of a database found. */
export interface DatabaseFinding extends CheckResult {
  subject: string
}

const aboutServer = [versionCheck, settingsCheck, standbysCheck, sessionsCheck]
const aboutTables = [
  codesCheck,
  warningsCheck,
  chainCheck,
  bytesCheck,
  transactionsCheck,
  visibilityCheck,
  countersCheck,
  racingCheck,
  cutCheck,
]

/**
 * Proves what the log of a cluster needs of a database, in tables of its own, which it drops: each finding as it is made.
 * @param urls addresses of its servers
 */
export async function* checkDatabase(urls: readonly string[]): AsyncGenerator<DatabaseFinding> {
  const bench = new CheckBench(urls)
  const servers = await findingOf(serversCheck, bench)
  yield servers
  if (servers.level === 'fail') return
  for (const check of aboutServer) yield await findingOf(check, bench)
  const made = await findingOf(making, bench)
  yield made
  try {
    if (made.level !== 'ok') return
    for (const check of aboutTables) yield await findingOf(check, bench)
  } finally {
    // Also where whoever asked has enough of it.
    const dropped = await findingOf(dropping, bench)
    if (dropped.level !== 'ok') yield dropped
  }
}

/** Carries a check out. What it throws is what it found. */
async function findingOf({ subject, run }: DatabaseCheck, bench: CheckBench): Promise<DatabaseFinding> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<CheckResult>((resolve) => {
    const secs = limits.clusterCheckSecs
    timer = setTimeout(
      () => resolve(wrong(`The database did not answer within ${secs} seconds`)),
      secs * 1_000,
    )
  })
  try {
    return { subject, ...(await Promise.race([run(bench), late])) }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return { subject, ...wrong(`It refused what a node asks for: ${text}`) }
  } finally {
    clearTimeout(timer)
    bench.drop()
  }
}

const making: DatabaseCheck = {
  subject: 'tables',
  async run(bench) {
    const session = await bench.session()
    for (const statement of bench.statements.create) await session.write(statement, [])
    return fine(`Made, as ${bench.prefix}_…, and dropped at the end`)
  },
}

const dropping: DatabaseCheck = {
  subject: 'tables',
  async run(bench) {
    const session = await bench.session()
    for (const statement of bench.statements.drop)
      await session.write(statement.replace('DROP TABLE', 'DROP TABLE IF EXISTS'), [])
    return fine('Dropped')
  },
}
