import { readFileSync } from 'node:fs'

/** The version of this program, as package.json has it. */
export const version = readVersion()

function readVersion(): string {
  // Compiled files stand two folders below the package's own: dist/src.
  const json: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  if (typeof json === 'object' && json !== null && 'version' in json && typeof json.version === 'string') {
    return json.version
  }
  throw new Error('package.json names no version')
}
