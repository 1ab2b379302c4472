import { type Config, describeFaults } from '../settings/config.js'
import { distrustOf } from '../data/trust.js'
import { examineDataDirectory, type Finding, fail, ok, warn } from './doctor-data.js'
import { exitCodes, showUsage } from './command.js'
import { printable } from './printable.js'
import { readSettings, warningsOf } from './read-settings.js'
import { originFault } from '../data/cluster-origin.js'
import { readFormat } from '../data/format.js'
import { openCluster } from './cluster-settings.js'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import { loadEngine } from '../front/door/engine.js'
import { ownAddress, serverUrl } from './server-url.js'

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

/** Looks at the database of the cluster, and whether the data directory is that of one of its nodes. */
async function examineCluster(config: Config): Promise<Finding[]> {
  const found = await openCluster(config)
  if (!found.ok) return [fail('cluster', found.detail)]
  const { origin, warnings } = found
  const format = readFormat(config.dataDir)
  const fault = typeof format === 'string' ? undefined : originFault(config, format, origin)
  const findings = warnings.map((warning) => warn('cluster', warning))
  if (fault !== undefined) return [...findings, fail('cluster', fault)]
  if (origin === undefined) return []
  return [...findings, ok('cluster', `${origin.id} of ${origin.shards} shards, which its database has whole`)]
}

/** Open files below which a server with many connections runs out of them. */
const OPEN_FILES_FEW = 10_240

/** A right clock is later than this, 2025-01-01. */
const EARLIEST_MS = Date.UTC(2025, 0, 1)

/** Node's version and the binary of the HTTP library. */
async function examineNode(): Promise<Finding[]> {
  const { node } = process.versions
  const [major = 0, minor = 0] = node.split('.').map(Number)
  const supported = (major === 20 && minor >= 19) || major >= 22
  const uws = await loadEngine('uws')
  return [
    supported ? ok('node', node) : fail('node', `${node}: expected 20.19 or later, or 22 or later`),
    uws.ok
      ? ok('HTTP library', 'uWebSockets.js loads on this Node')
      : warn('HTTP library', `node:http, the slower one: ${uws.detail}`),
  ]
}

/** How many files and sockets a process may have open, on Linux. */
function examineOpenFiles(): Finding[] {
  const subject = 'open files'
  let text: string
  try {
    text = readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return [warn(subject, 'the limit is not known on this system')]
  }
  const limit = /^Max open files\s+(\S+)/m.exec(text)?.[1] ?? 'unknown'
  if (limit === 'unlimited' || Number(limit) >= OPEN_FILES_FEW) return [ok(subject, `at most ${limit}`)]
  return [
    warn(subject, `at most ${limit}: a connection takes one, raise it by ulimit -n ${limits.streamsMax}`),
  ]
}

/**
 * Whether the clock can be right: records carry its time, and are refused after it was set back (docs/OPERATIONS.md,
 * Clock).
 */
function examineClock(dataDir: string): Finding[] {
  const subject = 'clock'
  const nowMs = systemClock()
  const shown = new Date(nowMs).toISOString()
  if (nowMs < EARLIEST_MS) return [fail(subject, `shows ${shown}, which has long passed`)]
  const writtenMs = statSync(join(dataDir, 'format.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (writtenMs > nowMs + limits.clockAheadMsMax) {
    return [fail(subject, `shows ${shown}, before the data directory was made`)]
  }
  return [ok(subject, shown)]
}

/** Milliseconds that the server may take to answer. */
const ANSWER_MS = 3000

/**
 * Whether the server answers at the configured address, on `/healthz` and `/readyz` (docs/OPERATIONS.md, Health and
 * metrics).
 */
async function examineServer(config: Config): Promise<{ alive: boolean; findings: Finding[] }> {
  const found = ownAddress(config)
  if (found === undefined && config.port === 0) {
    return {
      alive: false,
      findings: [warn('server', 'not asked: SERVICE_PORT=0 is a port that nobody knows')],
    }
  }
  const url = found ?? serverUrl(config)
  const health = await ask(`${url}/healthz`)
  if (typeof health === 'string') {
    return { alive: false, findings: [warn('server', `${url} does not answer: ${health}`)] }
  }
  if (health !== 200) {
    return { alive: false, findings: [fail('server', `${url}/healthz answers ${health}: another program?`)] }
  }
  const ready = await ask(`${url}/readyz`)
  const finding =
    ready === 200
      ? ok('server', `${url} is alive and ready`)
      : fail('server', `${url} is alive and not ready: /readyz answers ${ready}`)
  return { alive: true, findings: [finding] }
}

/** The status, or why there is none. */
async function ask(url: string): Promise<number | string> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS), redirect: 'manual' })
    await answer.body?.cancel()
    return answer.status
  } catch (error) {
    if (!(error instanceof Error)) return String(error)
    return error.cause instanceof Error ? error.cause.message : error.message
  }
}
