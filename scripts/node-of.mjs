/**
 * Prints the folder with the program `node` of a major version, to be put first in PATH: this machine's own if it is
 * that version, else the one that tests have of it, fetched from the npm registry when it is not there yet.
 */
import { dirname } from 'node:path'
import { nodeVersions, noOtherRuntime, runtime } from './runtimes.mjs'

const [major] = process.argv.slice(2)
const version = nodeVersions[major]
if (process.versions.node.startsWith(`${major}.`)) console.log(dirname(process.execPath))
else if (version !== undefined && noOtherRuntime === undefined) console.log(dirname(runtime('node', version)))
else {
  console.error(
    noOtherRuntime ??
      `Expected one of ${Object.keys(nodeVersions).join(', ')}, not ${major}: the major version of a Node`,
  )
  process.exitCode = 1
}
