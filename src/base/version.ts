import { existsSync, readFileSync } from 'node:fs'

/** The version of this program, as package.json has it. */
export const version = readVersion()

/** The package.json of this program: the first above the compiled file, however deep that lies. */
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
  throw new Error('package.json names no version')
}
