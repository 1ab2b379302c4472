import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const source = join(import.meta.dirname, '../../faults/shim/disk-shim.c')

/** What is missing to build the shim; `undefined` when nothing is. */
export const shimMissing =
  process.platform !== 'linux'
    ? 'no LD_PRELOAD on this system'
    : spawnSync('gcc', ['--version']).status === 0
      ? undefined
      : 'no gcc'

/** The built shim. */
export interface DiskShim {
  /** Variables that put it under a process, whose changes below `directory` it sees. */
  under(directory: string, settings: Record<string, string>): Record<string, string>
  remove(): void
}

/** Builds the shim. @throws Error when gcc is not there or does not take it */
export function buildDiskShim(): DiskShim {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-shim-'))
  const library = join(directory, 'disk-shim.so')
  const options = ['-O2', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', '-o', library, source]
  const { status, stderr, error } = spawnSync('gcc', [...options, '-ldl', '-lpthread'], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`The shim was not built: ${error?.message ?? stderr}`)
  return {
    under: (path, settings) => ({ ...settings, LD_PRELOAD: library, SHIM_DIR: path }),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}
