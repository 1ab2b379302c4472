import { hash } from 'node:crypto'
import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { readIfExists, writeDurably } from '../base/durable-file.js'

/** The file in a data directory with the node, incarnation and machine of its last use. */
const file = 'node.incarnation'

const BOOT_ID = '/proc/sys/kernel/random/boot_id'
const MACHINE_IDS = ['/etc/machine-id', '/var/lib/dbus/machine-id']

/**
 * The last incarnation of a node on this directory, whose process has certainly ended, because this process
 * has the lock.
 * @param location where this process runs, as `locationOf` returns it
 * @returns undefined if the directory was last used elsewhere, for example before a copy: the process may
 * still run there
 */
export function endedIncarnation(
  dataDir: string,
  node: string,
  location = locationOf(dataDir),
): number | undefined {
  const [name, incarnation, lastLocation] = readIfExists(join(dataDir, file))?.trim().split(' ') ?? []
  return name === node && location !== undefined && lastLocation === location
    ? Number(incarnation)
    : undefined
}

/** Records the incarnation of a node that uses the directory. */
export function noteIncarnation(
  dataDir: string,
  own: { node: string; incarnation: number },
  location = locationOf(dataDir),
): void {
  writeDurably(join(dataDir, file), `${own.node} ${own.incarnation} ${location ?? 'unknown'}\n`)
}

/**
 * Identifies this directory on this machine since its boot: 64 hex digits. A copy on the same machine has
 * another inode.
 * @returns undefined if the operating system does not identify its boot
 */
function locationOf(dataDir: string): string | undefined {
  const boot = readIfExists(BOOT_ID)?.trim()
  if (boot === undefined) return undefined
  const machine = MACHINE_IDS.map((path) => readIfExists(path)?.trim()).find(Boolean) ?? hostname()
  const { dev, ino } = statSync(dataDir, { bigint: true })
  return hash('sha256', JSON.stringify([machine, boot, `${dev}`, `${ino}`]))
}
