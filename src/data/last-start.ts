import { hash } from 'node:crypto'
import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { readIfThere, writeDurably } from '../base/durable-file.js'

/** The file in a data directory that says as which incarnation of which node it was used last, and where. */
const file = 'node.incarnation'

const BOOT_ID = '/proc/sys/kernel/random/boot_id'
const MACHINE_IDS = ['/etc/machine-id', '/var/lib/dbus/machine-id']

/**
 * The incarnation of a node whose process has certainly ended: it ran on this directory, which this process has locked.
 * @param place where this process runs, as `placeOf` says
 * @returns undefined where the directory was used elsewhere, as one that was copied, or restored from a snapshot, may have been:
 * the process may live on there
 */
export function endedIncarnation(
  dataDir: string,
  node: string,
  place = placeOf(dataDir),
): number | undefined {
  const [name, incarnation, there] = readIfThere(join(dataDir, file))?.trim().split(' ') ?? []
  return name === node && place !== undefined && there === place ? Number(incarnation) : undefined
}

/** Notes as which incarnation of a node this process uses the directory. */
export function noteIncarnation(
  dataDir: string,
  own: { node: string; incarnation: number },
  place = placeOf(dataDir),
): void {
  writeDurably(join(dataDir, file), `${own.node} ${own.incarnation} ${place ?? 'unknown'}\n`)
}

/**
 * A name of this directory on this machine since it was started: 64 hex digits. A copy of the directory on the same machine is
 * another file there.
 * @returns undefined where the operating system does not name its start
 */
function placeOf(dataDir: string): string | undefined {
  const boot = readIfThere(BOOT_ID)?.trim()
  if (boot === undefined) return undefined
  const machine = MACHINE_IDS.map((path) => readIfThere(path)?.trim()).find(Boolean) ?? hostname()
  const { dev, ino } = statSync(dataDir, { bigint: true })
  return hash('sha256', JSON.stringify([machine, boot, `${dev}`, `${ino}`]))
}
