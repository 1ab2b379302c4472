/** Downloads the runtimes that tests use, so that no test waits for the network. */
import { noOtherRuntime, runtime, testRuntimes } from './runtimes.mjs'

if (noOtherRuntime === undefined) for (const [name, version] of testRuntimes) runtime(name, version)
