import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, rmdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Why no small disk can be made here; `undefined` where one can. */
export const smallDiskMissing = whyMissing()

// Left out, but never in silence.
if (smallDiskMissing !== undefined) console.warn(`Skipped: no small disk, ${smallDiskMissing}`)

/** A file system of its own that a directory has been moved to. */
export interface SmallDisk {
  /** Takes all room that is left. */
  fill(): void
  /** Gives it back. */
  makeRoom(): void
  /** Removes it, with all that is on it. */
  remove(): void
}

/** Moves a directory, which nobody uses yet, to a file system in memory that is mounted in its place. */
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
      // Fails where it is full, which it is to be.
      spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k'])
    },
    makeRoom: () => rmSync(filler),
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
  const place = mkdtempSync(join(tmpdir(), 'strandfast-disk-'))
  try {
    onSmallDisk(place, 1).remove()
    return undefined
  } catch (error) {
    rmSync(place, { recursive: true, force: true })
    return error instanceof Error ? error.message : String(error)
  }
}
