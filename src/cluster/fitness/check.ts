import { limits } from '../../base/limits/limits.js'
import {
  codesCheck,
  countersCheck,
  transactionsCheck,
  visibilityCheck,
  warningsCheck,
} from './check-answers.js'
import { CheckBench, type DatabaseCheck, pass, type CheckResult, fail } from './check-bench.js'
import { bytesCheck, chainCheck, cutCheck, racingCheck } from './check-log.js'
import {
  encodingCheck,
  serversCheck,
  sessionsCheck,
  settingsCheck,
  standbysCheck,
  tablesCheck,
  versionCheck,
} from './check-server.js'

export interface DatabaseFinding extends CheckResult {
  subject: string
}

const serverChecks = [versionCheck, encodingCheck, settingsCheck, standbysCheck, sessionsCheck]
const tableChecks = [
  tablesCheck,
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
 * Checks whether a database meets the requirements of a cluster's log, in temporary tables that it drops at
 * the end; yields each finding as it is made.
 * @param urls addresses of its servers
 */
export async function* checkDatabase(urls: readonly string[]): AsyncGenerator<DatabaseFinding> {
  const bench = new CheckBench(urls)
  const servers = await runCheck(serversCheck, bench)
  yield servers
  if (servers.level === 'fail') return
  for (const check of serverChecks) yield await runCheck(check, bench)
  const created = await runCheck(createTables, bench)
  yield created
  try {
    if (created.level !== 'ok') return
    for (const check of tableChecks) yield await runCheck(check, bench)
  } finally {
    // Also if the caller stops iterating.
    const dropped = await runCheck(dropTables, bench)
    if (dropped.level !== 'ok') yield dropped
  }
}

/** Runs a check; an exception becomes a finding. */
async function runCheck({ subject, run }: DatabaseCheck, bench: CheckBench): Promise<DatabaseFinding> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<CheckResult>((resolve) => {
    const secs = limits.clusterCheckSecs
    timer = setTimeout(
      () => resolve(fail(`The database did not answer within ${secs} seconds`)),
      secs * 1_000,
    )
  })
  try {
    return { subject, ...(await Promise.race([run(bench), late])) }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return { subject, ...fail(`The database refused a statement that a node needs: ${text}`) }
  } finally {
    clearTimeout(timer)
    bench.drop()
  }
}

const createTables: DatabaseCheck = {
  subject: 'tables',
  async run(bench) {
    const session = await bench.session()
    for (const statement of bench.statements.create) await session.write(statement, [])
    return pass(`Created as ${bench.prefix}_…, dropped at the end`)
  },
}

const dropTables: DatabaseCheck = {
  subject: 'tables',
  async run(bench) {
    const session = await bench.session()
    for (const statement of bench.statements.drop)
      await session.write(statement.replace('DROP TABLE', 'DROP TABLE IF EXISTS'), [])
    return pass('Dropped')
  },
}
