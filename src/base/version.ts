import { existsSync, readFileSync } from 'node:fs'

/** The version of this program, as package.json has it. */
export const version = readVersion()

function readVersion(): string {
  // The package's own is the first above the compiled file, however deep that lies.
  let file = new URL('package.json', import.meta.url)
  for (let below = ''; !existsSync(file) && file.href !== below;) {
    below = file.href
    file = new URL('../package.json', file)
  }
  const json: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (typeof json === 'object' && json !== null && 'version' in json && typeof json.version === 'string') {
    return json.version
  }
  throw new Error('package.json names no version')
}
