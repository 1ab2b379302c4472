import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'

const SECTOR_BYTES = 512
/** Fields of `/sys/dev/block/MAJOR:MINOR/stat` (Linux, Documentation/block/stat.rst), counted from zero. */
const WRITES_FIELD = 4
const SECTORS_WRITTEN_FIELD = 6

/**
 * Writes to a block device by any process.
 * @typedef {object} Written
 * @property {number} writes completed
 * @property {number} bytes
 * @property {number} elapsedMs the time in which they happened
 */

/**
 * The block device that holds a directory.
 * @typedef {object} Disk
 * @property {(work: () => Promise<void>) => Promise<Written>} written counts the writes during some work,
 *   including those that the work left in the kernel's cache
 */

/**
 * Finds the block device that holds a directory. The counters of the device are used, not those of the
 * process: Linux counts a whole piece of its cache in /proc/PID/io for a write of a few bytes.
 * @param {string} directory
 * @returns {Disk | {missing: string}} `missing`: why there is none (overlay and tmpfs have no device, other
 * systems no such file)
 */
export function diskOf(directory) {
  const file = `/sys/dev/block/${deviceNumbers(statSync(directory, { bigint: true }).dev)}/stat`
  if (!existsSync(file)) return { missing: `no ${file}: ${directory} is not on a block device` }
  const read = () => readBlockStat(readFileSync(file, 'utf8'))
  return {
    async written(work) {
      // Data that other processes left in the cache is not counted; data that the work leaves there is.
      syncFileSystem(directory)
      const before = read()
      const startMs = performance.now()
      await work()
      syncFileSystem(directory)
      const after = read()
      const elapsedMs = performance.now() - startMs
      return { writes: after.writes - before.writes, bytes: after.bytes - before.bytes, elapsedMs }
    },
  }
}

/**
 * Major and minor number of a device, as Linux names it in /sys.
 * @param {bigint} dev of `stat`
 * @returns {string} `MAJOR:MINOR`
 */
export function deviceNumbers(dev) {
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & 0xfffff000n)
  const minor = (dev & 0xffn) | ((dev >> 12n) & 0xffffff00n)
  return `${major}:${minor}`
}

/**
 * The writes since the machine started.
 * @param {string} text of the device's `stat`
 * @returns {{writes: number, bytes: number}}
 */
export function readBlockStat(text) {
  const fields = text.trim().split(/\s+/).map(Number)
  const [writes, sectors] = [fields[WRITES_FIELD], fields[SECTORS_WRITTEN_FIELD]]
  if (!Number.isSafeInteger(writes) || !Number.isSafeInteger(sectors))
    throw new Error(`Expected figures of a block device, got: ${text}`)
  return { writes, bytes: sectors * SECTOR_BYTES }
}

/**
 * The writes of one record: all writes during the load, less the writes of other processes in the same time.
 * @param {{written: Written, rest: Written, records: number}} measured `rest`: the writes in a time without
 * the load
 * @returns {{bytes: number, writes: number, restShare: number}} of one record; `restShare`: the share of all
 *   bytes that other processes would have written
 */
export function writtenPerRecord({ written, rest, records }) {
  const times = written.elapsedMs / rest.elapsedMs
  return {
    bytes: (written.bytes - rest.bytes * times) / records,
    writes: (written.writes - rest.writes * times) / records,
    restShare: written.bytes === 0 ? 1 : (rest.bytes * times) / written.bytes,
  }
}

function syncFileSystem(directory) {
  const { status, error } = spawnSync('sync', ['-f', directory], { stdio: 'ignore' })
  if (status !== 0) throw new Error(`sync -f ${directory} failed`, { cause: error })
}
