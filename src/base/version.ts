import { existsSync, readFileSync } from 'node:fs'

/** The digest of the program (scripts/bundle.mjs); not defined in modules that are not bundled. */
declare const BUILD_DIGEST: string

/** The version in package.json. */
export const version = readVersion()

/**
 * The version and the digest of this build, such as 0.4.0+3f2a9c1b7d21. Two builds of the same sources have
 * the same one; any other build has another one (docs/adr/0047-links.md).
 */
export const build = `${version}+${typeof BUILD_DIGEST === 'undefined' ? 'source' : BUILD_DIGEST}`

/** The package.json of this program: the nearest one above the compiled file. */
export function packageFile(): URL {
  let file = new URL('package.json', import.meta.url)
  for (let below = ''; !existsSync(file) && file.href !== below;) {
    below = file.href
    file = new URL('../package.json', file)
  }
  return file
}

function readVersion(): string {
  const json: unknown = JSON.parse(readFileSync(packageFile(), 'utf8'))
  if (typeof json === 'object' && json !== null && 'version' in json && typeof json.version === 'string') {
    return json.version
  }
  throw new Error('package.json has no version')
}

/** What to do with a format 1, of a directory or of a cluster: it was never in a release. */
export const adviceForFormat1 = 'commit 7df04a86 of Strandfast is the last that reads it, and can upgrade it'
