import { existsSync, readFileSync } from 'node:fs'

/** The version in package.json. */
export const version = readVersion()

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
