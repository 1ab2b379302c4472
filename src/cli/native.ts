import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * Whether uWebSockets.js has a binary for this Node and machine. The registry's package keeps its binaries in `bin`
 * beside its entry, the upstream one beside its entry.
 * @returns one line that says what to do when it has none
 */
export function missingBinary(): string | undefined {
  const binary = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`
  return hasFile(`bin/${binary}`) || hasFile(binary)
    ? undefined
    : `uWebSockets.js has no binary for Node ${process.versions.node} on ${process.platform} ${process.arch}: use ` +
        'Node 20 or 22, or install upstream by `npm install uNetworking/uWebSockets.js#v20.x`, v20.x being its ' +
        'newest release tag'
}

/** Whether the package has a file of this path beside its entry. */
function hasFile(path: string): boolean {
  try {
    return existsSync(fileURLToPath(new URL(path, import.meta.resolve('uWebSockets.js'))))
  } catch {
    return false
  }
}
