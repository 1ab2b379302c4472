import { type Config, describeFaults } from '../settings/config.js'
import { distrustOf } from '../data/trust.js'
import { examineCluster } from './doctor-cluster.js'
import { examineDataDirectory } from './doctor-data.js'
import { examineClock, examineNode, examineOpenFiles } from './doctor-machine.js'
import { examineServer } from './doctor-server.js'
import { type Finding, fail, ok, warn } from './finding.js'
import { exitCodes } from './exit-codes.js'
import { printable } from './printable.js'
import { showUsage } from './read-options.js'
import { readSettings } from './read-settings.js'
import { warningsOf } from './warnings.js'

const USAGE = `Usage: strandfast doctor [--data-dir DIR] [--SETTING VALUE…]
Examines Node, the settings, the data directory, the disk and the running server, and changes nothing.
`

/**
 * Looks for what keeps the server from running, or from running safely (docs/OPERATIONS.md, doctor).
 * @returns the exit code: 0 without a failed check, else 1; 78 wrong usage or a data directory of another user
 */
export async function doctorCommand(args: string[]): Promise<number> {
  const options = readSettings(args)
  if (!options.ok) return showUsage(USAGE, options)
  const { reading } = options
  let failed = false
  const show = (findings: readonly Finding[]) => {
    for (const { level, subject, detail } of findings) {
      failed ||= level === 'fail'
      process.stdout.write(`${level.padEnd(4)}  ${subject.padEnd(14)}  ${printable(detail)}\n`)
    }
  }
  show([...(await examineNode()), ...examineOpenFiles()])
  show((await warningsOf(reading)).map((warning) => warn('settings', warning)))
  if (reading.ok) {
    const distrusted = distrustOf(reading.config.dataDir)
    if (distrusted !== undefined) {
      show([fail('permissions', distrusted)])
      return exitCodes.configuration
    }
    await examineWith(reading.config, show)
  } else
    show(
      describeFaults(reading.faults)
        .trimEnd()
        .split('\n')
        .map((line) => fail('settings', line)),
    )
  return failed ? exitCodes.foundWrong : exitCodes.fine
}

async function examineWith(config: Config, show: (findings: readonly Finding[]) => void): Promise<void> {
  show([ok('settings', 'valid')])
  // The server first: checking the lock takes it for a moment, which would disturb a server that is starting.
  const server = await examineServer(config)
  show(await examineDataDirectory(config, server.alive))
  show(await examineCluster(config))
  show(examineClock(config.dataDir))
  show(server.findings)
}
