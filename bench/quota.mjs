import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A share is given anew so often: seldom, and a process that has used its own up lets others wait longer than their work
 * takes; the kernel gives a millisecond at least.
 */
const PERIOD_US = 10_000
/** Where version 1 and version 2 of control groups are, and how a quota is written there. */
const places = [
  {
    root: '/sys/fs/cgroup/cpu',
    write(folder, quotaUs) {
      writeFileSync(join(folder, 'cpu.cfs_period_us'), `${PERIOD_US}`)
      writeFileSync(join(folder, 'cpu.cfs_quota_us'), `${quotaUs}`)
    },
    file: 'cpu.cfs_quota_us',
  },
  {
    root: '/sys/fs/cgroup',
    write: (folder, quotaUs) => writeFileSync(join(folder, 'cpu.max'), `${quotaUs} ${PERIOD_US}`),
    file: 'cpu.max',
  },
]

/** What removes those that are there when the bench ends by a signal or a fault; they must not outlive it. */
const made = new Set()
process.on('exit', () => {
  for (const remove of made) {
    try {
      remove()
    } catch {
      // Processes that are being killed may still be in it. It costs nothing when they are gone.
    }
  }
})

/**
 * A control group of the kernel with a share of one processor.
 * @typedef {object} Quota
 * @property {(pid: number) => void} add has a process with all its threads share it
 * @property {() => void} remove lets its processes have what they want again, and removes it
 */

/**
 * Makes a control group.
 * @param {string} name
 * @param {number} share of one processor
 * @returns {Quota}
 * @throws {Error} where there are none, or this user may make none
 */
export function makeQuota(name, share) {
  const place = places.find(({ root }) => existsSync(join(root, 'cgroup.procs')))
  if (place === undefined) throw new Error('no control groups')
  const folder = join(place.root, `${name}-${process.pid}`)
  mkdirSync(folder)
  let isThere = true
  const remove = () => {
    if (!isThere) return
    for (const pid of readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean))
      moveIfThere(pid, place.root)
    rmdirSync(folder)
    isThere = false
    made.delete(remove)
  }
  made.add(remove)
  try {
    if (!existsSync(join(folder, place.file))) throw new Error('no control of processors')
    place.write(folder, Math.round(share * PERIOD_US))
  } catch (error) {
    remove()
    throw error
  }
  return {
    add: (pid) => writeFileSync(join(folder, 'cgroup.procs'), `${pid}`),
    remove,
  }
}

/** A process may end while it is moved. */
function moveIfThere(pid, root) {
  try {
    writeFileSync(join(root, 'cgroup.procs'), pid)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}
