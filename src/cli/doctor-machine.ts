import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import { type Finding, fail, ok, warn } from './finding.js'
import { loadEngine } from '../front/door/engine.js'

/** Open files below which a server with many connections runs out of them. */
const OPEN_FILES_FEW = 10_240

/** A right clock is later than this, 2025-01-01. */
const EARLIEST_MS = Date.UTC(2025, 0, 1)

/** Node's version and the binary of the HTTP library. */
export async function examineNode(): Promise<Finding[]> {
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
export function examineOpenFiles(): Finding[] {
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
export function examineClock(dataDir: string): Finding[] {
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
