import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const source = join(import.meta.dirname, '../../faults/shim/disk-shim.c')

/** Why the shim cannot be built; `undefined` if it can. */
export const shimMissing =
  process.platform !== 'linux'
    ? 'no LD_PRELOAD on this system'
    : spawnSync('gcc', ['--version']).status === 0
      ? undefined
      : 'no gcc'

/** The built shim. */
export interface DiskShim {
  /**
   * Environment variables that load it into a process. It sees the changes of the process below `directory`.
   */
  under(directory: string, settings: Record<string, string>): Record<string, string>
  remove(): void
}

/** Builds the shim. @throws Error if gcc is missing or fails */
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
