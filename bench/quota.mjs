import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The period of a quota. With a longer one, a process that has used its share up makes others wait longer
 * than their work takes; the kernel's smallest quota is a millisecond.
 */
const PERIOD_US = 10_000
/** Where control groups of version 1 and version 2 are mounted, and how a quota is written there. */
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

/** Removes groups that still exist when the bench ends by a signal or a fault; they must not outlive it. */
const created = new Set()
process.on('exit', () => {
  for (const remove of created) {
    try {
      remove()
    } catch {
      // Processes that are being killed may still be in it. A group without processes costs nothing.
    }
  }
})

/**
 * A control group of the kernel with a share of one processor.
 * @typedef {object} Quota
 * @property {(pid: number) => void} add puts a process with all its threads under the quota
 * @property {() => void} remove frees its processes from the quota and removes the group
 */

/**
 * Creates a control group.
 * @param {string} name
 * @param {number} share of one processor
 * @returns {Quota}
 * @throws {Error} if there are no control groups, or this user may not create one
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
    created.delete(remove)
  }
  created.add(remove)
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

/** Moves a process unless it has exited. */
function moveIfThere(pid, root) {
  try {
    writeFileSync(join(root, 'cgroup.procs'), pid)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}
