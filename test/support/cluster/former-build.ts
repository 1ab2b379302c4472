import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PlantedBuild } from './rounds/planted-build.js'

const root = join(import.meta.dirname, '../../..')

/** Files that decide which packages are installed. */
const lockFile = 'package-lock.json'
/** What a build is made from. */
const sources = ['package.json', 'tsconfig.json', 'src', 'workers', 'scripts', 'packages']

/**
 * The commit of the last released version; before the first release, the last commit before this one that
 * changed the changelog. Commits whose sources are the same as now are skipped, because their build is this
 * one.
 * @returns undefined if it needs other packages than those that are installed, or there is no history
 */
export function formerCommit(): string | undefined {
  const released = git(['describe', '--tags', '--abbrev=0', '--match', 'v*', 'HEAD^'])
  const changed = git(['log', '--format=%H', 'HEAD^', '--', 'CHANGELOG.md'])
  const commit = [released, ...(changed?.split('\n') ?? [])].find(
    (at) => at !== undefined && differs(at, sources),
  )
  return commit === undefined || differs(commit, [lockFile]) ? undefined : commit
}

function differs(commit: string, paths: readonly string[]): boolean {
  const { status } = spawnSync('git', ['diff', '--quiet', commit, 'HEAD', '--', ...paths], { cwd: root })
  return status !== 0
}

/** Builds the program of a commit with the installed packages. */
export function buildOf(commit: string): PlantedBuild {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-former-'))
  const steps = [`git -C '${root}' archive ${commit} -- ${sources.join(' ')}`, `tar -x -C '${directory}'`]
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
