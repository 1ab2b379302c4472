import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PlantedBuild } from './rounds/planted-build.js'

const root = join(import.meta.dirname, '../../..')

/** Files that decide which packages are installed. */
const lockFile = 'package-lock.json'

/**
 * The commit of the last released version; before the first release, the last commit before this one that
 * changed the changelog.
 * @returns undefined if it needs other packages than those that are installed, or there is no history
 */
export function formerCommit(): string | undefined {
  const released = git(['describe', '--tags', '--abbrev=0', '--match', 'v*', 'HEAD^'])
  const changed = git(['log', '--max-count=1', '--format=%H', 'HEAD^', '--', 'CHANGELOG.md'])
  const commit = released ?? changed
  if (commit === undefined) return undefined
  const differs = spawnSync('git', ['diff', '--quiet', commit, 'HEAD', '--', lockFile], { cwd: root })
  return differs.status === 0 ? commit : undefined
}

/** Builds the program of a commit with the installed packages. */
export function buildOf(commit: string): PlantedBuild {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-former-'))
  const steps = [
    `git -C '${root}' archive ${commit} -- package.json tsconfig.json src workers scripts packages`,
    `tar -x -C '${directory}'`,
  ]
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  for (const command of [steps.join(' | '), 'npx tsc -p tsconfig.json', 'node scripts/bundle.mjs']) {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd: directory, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${command}: ${stdout}${stderr}`)
  }
  return {
    program: join(directory, 'dist/program/strandfast.js'),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}

function git(args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  const text = stdout.trim()
  return status === 0 && text !== '' ? text : undefined
}
