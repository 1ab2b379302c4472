import { availableParallelism } from 'node:os'
import { shardOf } from '../dist/src/strand/placement.js'
import { shardsMax } from '../dist/src/settings/threads.js'

/**
 * The body of one record of about 230 bytes, as a fleet of devices would send it.
 * @param {number} number
 * @returns {object}
 */
export function recordBody(number) {
  return {
    device: `sensor-${String(number % 997).padStart(4, '0')}`,
    site: 'north-hall',
    number,
    taken_at: '2026-03-01T12:00:00.000Z',
    temperature: 20 + (number % 100) / 10,
    humidity: 40 + (number % 37),
    pressure: 1_000 + (number % 41) / 2,
    status: number % 50 === 0 ? 'warning' : 'normal',
    note: 'taken by the regular round of the hall',
    firmware: '4.12.7',
  }
}

/**
 * Names of agents, `PREFIX-0000` and up, distributed evenly over the shards: with a few random names one
 * shard would get more than its share, and the others would wait for it at the end. Many random names are
 * distributed evenly.
 * @param {string} prefix
 * @param {number} count
 * @param {number} [shards] one for each processor unless given
 * @returns {string[]}
 */
export function agentNames(prefix, count, shards = Math.min(availableParallelism(), shardsMax)) {
  const names = []
  for (let number = 0; names.length < count; number++) {
    const name = `${prefix}-${String(number).padStart(4, '0')}`
    if (shardOf(name, shards) === names.length % shards) names.push(name)
  }
  return names
}

/**
 * One request of a load.
 * @typedef {object} LoadRequest
 * @property {'GET' | 'POST'} method
 * @property {string} path
 * @property {Record<string, string>} headers
 * @property {string} [body]
 */

/**
 * Single writes that cycle through the agents, each with a different body.
 * @param {string[]} agents
 * @param {{count: number, headers: Record<string, string>}} options
 * @returns {LoadRequest[]}
 */
export function writeRequests(agents, { count, headers }) {
  return Array.from({ length: count }, (_, number) => ({
    method: 'POST',
    path: `/v1/agents/${agents[number % agents.length]}/records`,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ data: recordBody(number) }),
  }))
}
