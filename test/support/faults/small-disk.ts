import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, rmdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Why no small disk can be mounted; `undefined` if it can. */
export const smallDiskMissing = whyMissing()

if (smallDiskMissing !== undefined) console.warn(`Skipped: no small disk, ${smallDiskMissing}`)

/** A separate file system to which a directory was moved. */
export interface SmallDisk {
  /** Fills the disk. */
  fill(): void
  /** Frees the space again. */
  freeSpace(): void
  /** Removes the disk with all its files. */
  remove(): void
}

/** Moves an unused directory to a file system in memory, which is mounted at its path. */
export function onSmallDisk(directory: string, megabytes: number): SmallDisk {
  const { uid, gid } = statSync(directory)
  const moved = `${directory}.moved`
  renameSync(directory, moved)
  mkdirSync(directory)
  run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700,uid=${uid},gid=${gid}`, 'none', directory])
  run('cp', ['-a', `${moved}/.`, directory])
  rmSync(moved, { recursive: true })
  const filler = join(directory, 'filler')
  return {
    fill() {
      // Fails when the disk is full, as intended.
      spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k'])
    },
    freeSpace: () => rmSync(filler),
    remove() {
      run('umount', [directory])
      rmdirSync(directory)
    },
  }
}

function run(program: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`)
}

function whyMissing(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'it takes root on Linux'
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-disk-'))
  try {
    onSmallDisk(directory, 1).remove()
    return undefined
  } catch (error) {
    rmSync(directory, { recursive: true, force: true })
    return error instanceof Error ? error.message : String(error)
  }
}
