import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runScript } from './child.mjs'
import { rawRequests, readWrkOutput, wrkScript } from './wrk.mjs'

const autocannonScript = new URL('generators/autocannon-process.mjs', import.meta.url)
/** autocannon prepares every request once for each connection. */
const AUTOCANNON_REQUESTS_MAX = 100

/**
 * The result of a load.
 * @typedef {object} LoadResult
 * @property {number} requests answered
 * @property {number} perSecond
 * @property {number} p50Ms
 * @property {number} p99Ms
 * @property {number} maxMs
 * @property {number} failed answers other than 2xx, and sockets that broke
 */

/**
 * A list of requests that a generator repeats.
 * @typedef {object} Load
 * @property {(url: string, shape: {connections: number, seconds: number}) => Promise<LoadResult>} run
 */

/**
 * Prepares a load. The same load runs against a product and its ceiling.
 * @param {import('./records.mjs').LoadRequest[]} requests
 * @param {{generator: 'wrk' | 'autocannon', directory: string}} options
 * @returns {Load}
 */
export function prepareLoad(requests, { generator, directory }) {
  return generator === 'wrk' ? prepareWrk(requests, directory) : prepareAutocannon(requests)
}

/**
 * Runs a load. Throws when an answer was not 2xx.
 * @param {Load} load
 * @param {string} url
 * @param {{connections: number, seconds: number}} shape
 * @returns {Promise<LoadResult>}
 */
export async function runCleanly(load, url, shape) {
  const result = await load.run(url, shape)
  if (result.failed > 0) throw new Error(`${result.failed} of ${result.requests} requests to ${url} failed`)
  if (result.requests === 0) throw new Error(`No request to ${url} was answered`)
  return result
}

function prepareWrk(requests, directory) {
  const id = randomUUID()
  const script = join(directory, `${id}.lua`)
  const list = join(directory, `${id}.requests`)
  writeFileSync(list, rawRequests(requests))
  writeFileSync(script, wrkScript)
  return {
    async run(url, { connections, seconds }) {
      // One thread: it can send several times more than the echo answers, and on two cores a second thread
      // would only take a core from the server.
      const args = [
        '-t1',
        `-c${connections}`,
        `-d${seconds}s`,
        '--timeout',
        '10s',
        '-s',
        script,
        url,
        '--',
        list,
      ]
      const { stdout } = await promisify(execFile)('wrk', args)
      return readWrkOutput(stdout)
    },
  }
}

function prepareAutocannon(requests) {
  const some = requests.slice(0, AUTOCANNON_REQUESTS_MAX)
  return {
    run: (url, { connections, seconds }) =>
      runScript(autocannonScript, { url, connections, seconds, requests: some }),
  }
}

/**
 * Removes a directory of the bench when the process exits.
 * @param {string} directory
 */
export function removeAtExit(directory) {
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
}
