import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { childrenOf, startServer } from './child.mjs'
import { program } from './product.mjs'

/** The root key of every server that is measured. */
export const rootKey = 'bench-root-key-bench-root-key-bench-root-key'

/** Sent with every request, also to ceilings, so that both parse the same bytes. */
export const credential = { authorization: `Bearer ${rootKey}` }

/** Milliseconds of a tick in /proc: USER_HZ is 100. */
const MS_A_TICK = 10

/**
 * Starts the built server on a data directory.
 * @param {string} dataDirectory
 * @param {Record<string, string>} [env] settings besides the usual ones
 * @returns {Promise<import('./child.mjs').ServerProcess>}
 */
export function startProduct(dataDirectory, env = {}) {
  return startServer([program(), 'serve'], {
    SERVICE_DATA_DIR: dataDirectory,
    SERVICE_PORT: '0',
    SERVICE_ROOT_API_KEY: rootKey,
    SERVICE_RATE_LIMIT_RPS: '0',
    SERVICE_LOG_LEVEL: 'warn',
    ...env,
  })
}

/**
 * Starts the built server with sign-in, licensed by the authority of its data directory, without a limit of
 * auth requests.
 * @param {string} dataDirectory
 * @returns {Promise<import('./child.mjs').ServerProcess>}
 */
export function startProductWithAuth(dataDirectory) {
  const license = execFileSync(process.execPath, [program(), 'license', 'issue', '--licensee', 'Bench'], {
    env: { PATH: process.env.PATH, SERVICE_DATA_DIR: dataDirectory },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return startProduct(dataDirectory, {
    SERVICE_AUTH_ENABLED: 'true',
    SERVICE_LICENSE_KEY: license.trim(),
    SERVICE_AUTH_RATE_LIMIT_RPS: '0',
  })
}

/**
 * Calls the server and returns its JSON answer.
 * @param {string} url with path
 * @param {{method?: string, headers?: object, body?: unknown, ndjson?: string, status?: number}} [options]
 *   `method`: GET, or POST with a body, unless given; `headers`: the root key's unless given; `status`: what
 *   is expected, 200 unless given
 * @returns {Promise<any>}
 * @throws {Error} on any other status
 */
export async function call(url, { method, headers = credential, body, ndjson, status = 200 } = {}) {
  const contentType = ndjson === undefined ? 'application/json' : 'application/x-ndjson'
  const response = await fetch(url, {
    method: method ?? (body === undefined && ndjson === undefined ? 'GET' : 'POST'),
    headers: { ...headers, 'content-type': contentType },
    body: ndjson ?? (body === undefined ? undefined : JSON.stringify(body)),
  })
  const text = await response.text()
  if (response.status !== status)
    throw new Error(`Expected ${status} of ${url}, got ${response.status}: ${text}`)
  return JSON.parse(text)
}

/**
 * Creates agents in a zone where changes apply immediately.
 * @param {string} url
 * @param {string[]} names
 */
export async function createAgents(url, names) {
  for (const name of names) await call(`${url}/v1/agents`, { body: { name, zone: 'free' }, status: 201 })
}

/**
 * The number of records of some agents together, without genesis records.
 * @param {string} url
 * @param {string[]} names
 * @param {object} [headers] the root key's unless given
 * @returns {Promise<number>}
 */
export async function countRecords(url, names, headers = credential) {
  let records = 0
  for (const name of names)
    records += (await call(`${url}/v1/agents/${name}/status`, { headers })).record_count
  return records
}

/**
 * A metric of the server, summed over its shards.
 * @param {string} url
 * @param {string} name
 * @returns {Promise<number | undefined>} undefined where the server has no such metric
 */
export async function readMetric(url, name) {
  const response = await fetch(`${url}/metrics`)
  if (response.status !== 200) throw new Error(`Expected 200 of ${url}/metrics, got ${response.status}`)
  return sumOfMetric(await response.text(), name)
}

/**
 * The sum of all series of a metric.
 * @param {string} text in the format of Prometheus
 * @param {string} name
 * @returns {number | undefined} undefined if the text has no such metric
 */
export function sumOfMetric(text, name) {
  const series = text.split('\n').filter((line) => /^\w+/.exec(line)?.[0] === name)
  const values = series.map((line) => Number(line.split(' ').at(-1)))
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0)
}

/**
 * Memory of a process in bytes: all resident memory, and anonymous memory, which excludes file pages that the
 * kernel can drop.
 * @param {number} pid
 * @returns {{resident: number, anonymous: number}}
 * @throws {Error} where there is no /proc
 */
export function memoryOf(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const bytes = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024
  return { resident: bytes('VmRSS'), anonymous: bytes('RssAnon') }
}

/**
 * CPU time of a process with all its threads, milliseconds.
 * @param {number} pid
 * @returns {number}
 * @throws {Error} where there is no /proc
 */
export function cpuMsOf(pid) {
  const [user, system] = timesOf(pid)
  return (user + system) * MS_A_TICK
}

/**
 * CPU time of the main thread of a process, which is its first front, milliseconds.
 * @param {number} pid
 * @returns {number}
 * @throws {Error} where there is no /proc
 */
export function cpuMsOfFront(pid) {
  const [onProcessorNs] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
  return Number(onProcessorNs) / 1e6
}

/**
 * CPU time of a process and its children, including children that have exited, milliseconds.
 * @param {number} pid
 * @returns {number}
 * @throws {Error} where there is no /proc
 */
export function cpuMsOfAll(pid) {
  const own = timesOf(pid).reduce((sum, ticks) => sum + ticks, 0) * MS_A_TICK
  return childrenOf(pid).reduce((sum, child) => sum + (cpuMsIfThere(child) ?? 0), own)
}

/** Returns undefined if the child exits during the read. */
function cpuMsIfThere(pid) {
  try {
    return cpuMsOfAll(pid)
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined
    throw error
  }
}

/** Ticks in user and in system mode, and those of children that have ended. */
function timesOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name of the command is in brackets and may contain spaces; then state, parents, terminal and the
  // like.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).map(Number)
}
