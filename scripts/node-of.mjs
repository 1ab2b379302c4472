/**
 * Prints the folder of `node` in a major version, to be put first in PATH: that of this machine, or one from
 * the npm registry for tests.
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
      `Expected a major version of Node (${Object.keys(nodeVersions).join(', ')}), got ${major}`,
  )
  process.exitCode = 1
}
