import { type Config, describeFaults } from '../settings/config.js'
import { findServer } from '../data/address.js'
import { distrustOf } from '../data/trust.js'
import { examineDataDirectory, type Finding, fail, ok, warn } from './doctor-data.js'
import { exitCodes, showUsage } from './command.js'
import { printable } from './printable.js'
import { readSettings, warningsOf } from './read-settings.js'
import { originFault } from '../data/cluster-origin.js'
import { readFormat } from '../data/format.js'
import { readClusterOrigin } from './cluster-settings.js'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import { loadEngine } from '../front/engine/engine.js'
import { runningServerUrl, serverUrl } from './server-url.js'

const USAGE = `Usage: strandfast doctor [--data-dir DIR] [--SETTING VALUE…]
Checks Node, the settings, the data directory, the disk and the running server. Changes nothing.
`

/**
 * Looks for problems that keep the server from starting, or from running safely (docs/OPERATIONS.md, doctor).
 * @returns the exit code: 0 no check failed, 1 a check failed, 78 wrong usage, invalid settings or a data
 * directory of another user
 */
export async function doctorCommand(args: string[]): Promise<number> {
  const options = await readSettings(args)
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
  } else {
    const lines = describeFaults(reading.faults).trimEnd().split('\n')
    show(lines.map((line) => fail('settings', line)))
    return exitCodes.configuration
  }
  return failed ? exitCodes.foundWrong : exitCodes.fine
}

async function examineWith(config: Config, show: (findings: readonly Finding[]) => void): Promise<void> {
  show([ok('settings', 'valid')])
  // The check of the lock takes the lock for a moment, which would disturb a starting server, so the server
  // is checked first.
  const server = await examineServer(config)
  show(await examineDataDirectory(config, server.alive))
  show(await examineCluster(config))
  show(examineClock(config.dataDir))
  show(server.findings)
}

/** Checks the database of the cluster, and whether the data directory belongs to one of its nodes. */
async function examineCluster(config: Config): Promise<Finding[]> {
  const found = await readClusterOrigin(config)
  if (!found.ok) return [fail('cluster', found.detail)]
  const { origin, warnings } = found
  const format = readFormat(config.dataDir)
  const fault = typeof format === 'string' ? undefined : originFault(config, format, origin)
  const findings = warnings.map((warning) => warn('cluster', warning))
  if (fault !== undefined) return [...findings, fail('cluster', fault)]
  if (origin === undefined) return []
  return [...findings, ok('cluster', `${origin.id}, ${origin.shards} shards, complete in its database`)]
}

/** Below this limit on open files, a server with many connections runs out of them. */
const OPEN_FILES_FEW = 10_240

/** 2025-01-01: a clock that shows an earlier time is wrong. */
const EARLIEST_MS = Date.UTC(2025, 0, 1)

/** Checks Node's version and the binary of the HTTP library. */
async function examineNode(): Promise<Finding[]> {
  const { node } = process.versions
  const [major = 0, minor = 0] = node.split('.').map(Number)
  const supported = (major === 20 && minor >= 19) || (major === 22 && minor >= 2) || major > 22
  const uws = await loadEngine('uws')
  return [
    supported
      ? ok('node', node)
      : fail('node', `${node} is not supported: use 20.19 or a later 20, or 22.2 or later`),
    uws.ok
      ? ok('HTTP library', 'uWebSockets.js loads on this Node')
      : warn('HTTP library', `node:http, the slower one: ${uws.detail}`),
  ]
}

/** Checks how many files and sockets a process may have open; known on Linux only. */
function examineOpenFiles(): Finding[] {
  const subject = 'open files'
  let text: string
  try {
    text = readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return [warn(subject, 'the limit is unknown on this operating system')]
  }
  const limit = /^Max open files\s+(\S+)/m.exec(text)?.[1] ?? 'unknown'
  if (limit === 'unlimited' || Number(limit) >= OPEN_FILES_FEW) return [ok(subject, `at most ${limit}`)]
  return [
    warn(
      subject,
      `at most ${limit}, one for each connection: raise the limit with ulimit -n ${limits.streamsMax}`,
    ),
  ]
}

/**
 * Checks that the clock is plausible: records carry its time, and writes are refused after it was set back
 * (docs/OPERATIONS.md, Clock).
 */
function examineClock(dataDir: string): Finding[] {
  const subject = 'clock'
  const nowMs = systemClock()
  const shown = new Date(nowMs).toISOString()
  if (nowMs < EARLIEST_MS) return [fail(subject, `shows ${shown}: set the clock`)]
  const writtenMs = statSync(join(dataDir, 'format.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (writtenMs > nowMs + limits.clockAheadMsMax) {
    return [fail(subject, `shows ${shown}, before the data directory was created: set the clock`)]
  }
  return [ok(subject, shown)]
}

/** Milliseconds that the server may take to respond. */
const RESPONSE_MS_MAX = 3000

/**
 * Calls `/healthz` and `/readyz` of the server, at the address that it noted or the configured one
 * (docs/MONITORING.md).
 */
async function examineServer(config: Config): Promise<{ alive: boolean; findings: Finding[] }> {
  const found = runningServerUrl(config)
  if (found === undefined && config.port === 0) {
    return {
      alive: false,
      findings: [warn('server', 'not checked: with SERVICE_PORT=0 the port of a stopped server is unknown')],
    }
  }
  const url = found ?? serverUrl(config)
  const health = await statusOf(`${url}/healthz`)
  if (typeof health === 'string') {
    return { alive: false, findings: [warn('server', `${url} does not respond: ${health}`)] }
  }
  if (health !== 200) {
    return {
      alive: false,
      findings: [fail('server', `${url}/healthz returns ${health}: is it another program?`)],
    }
  }
  if (found === undefined) {
    const { fault = '' } = findServer(config.dataDir)
    return { alive: false, findings: [warn('server', `another server responds at ${url}: ${fault}`)] }
  }
  const ready = await statusOf(`${url}/readyz`)
  const finding =
    ready === 200
      ? ok('server', `${url} is alive and ready`)
      : fail('server', `${url} is alive and not ready: /readyz returns ${ready}`)
  return { alive: true, findings: [finding, ...(await examineSetAside(url))] }
}

/** Checks whether the shards of the server have set rows aside (docs/MONITORING.md). */
async function examineSetAside(url: string): Promise<Finding[]> {
  const metrics = await metricsOf(url)
  if (!metrics.ok) return [warn('set aside', `unknown: ${url}/metrics does not respond: ${metrics.cause}`)]
  const counts = [...metrics.text.matchAll(/^strandfast_rows_set_aside\{shard="\d+"\} (\d+)$/gm)]
  const count = counts.reduce((sum, [, digits]) => sum + Number(digits), 0)
  if (count === 0) return []
  return [warn('set aside', `${count} rows could not be handled; the log of the server has the reasons`)]
}

async function metricsOf(url: string): Promise<{ ok: true; text: string } | { ok: false; cause: string }> {
  try {
    const signal = AbortSignal.timeout(RESPONSE_MS_MAX)
    const response = await fetch(`${url}/metrics`, { signal, redirect: 'manual' })
    return { ok: true, text: await response.text() }
  } catch (error) {
    return { ok: false, cause: causeOf(error) }
  }
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message : error.message
}

/** @returns the status, or a text that says why the request failed */
async function statusOf(url: string): Promise<number | string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(RESPONSE_MS_MAX), redirect: 'manual' })
    await response.body?.cancel()
    return response.status
  } catch (error) {
    return causeOf(error)
  }
}
