import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { program } from './product.mjs'
import { call, readMetric, rootKey, startProduct } from './server.mjs'

const masterSeed = '42'.repeat(32)
const POLL_MS = 20
const WAIT_MS_MAX = 120_000

/**
 * Shards of a cluster whose nodes share them: one for each processor, and at least one for each of two nodes.
 * @param {import('./options.mjs').Plan} plan
 */
export function shardsOf({ cores }) {
  return Math.max(2, cores)
}

/**
 * Creates an empty cluster.
 * @param {string} url of the database
 * @param {number} shards
 * @returns {Record<string, string>} settings of its nodes
 */
export function initCluster(url, shards) {
  const env = {
    SERVICE_CLUSTER_URL: url,
    SERVICE_MASTER_SEED: masterSeed,
    SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
  }
  execFileSync(process.execPath, [program(), 'cluster', 'init', '--shards', `${shards}`], {
    env: { PATH: process.env.PATH, SERVICE_ROOT_API_KEY: rootKey, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  return env
}

/**
 * Starts a node of a cluster and waits until it accepts requests.
 * @param {string} name also the name of its data directory
 * @param {Record<string, string>} env settings of the cluster's nodes
 * @param {string} directory that holds its data directory
 */
export async function startNode(name, env, directory) {
  const node = await startProduct(join(directory, name), { ...env, SERVICE_CLUSTER_NODE: name })
  try {
    await until(`${name} to accept requests`, () => isReady(node.url))
    return node
  } catch (error) {
    await node.kill()
    throw error
  }
}

/**
 * The number of shards that a node owns, by its metric.
 * @param {string} url
 * @returns {Promise<number>}
 */
export async function ownedBy(url) {
  return (await readMetric(url, 'strandfast_cluster_owned_shards')) ?? 0
}

/**
 * Waits until all nodes accept requests and share the shards evenly: no node owns two more than another.
 * @param {string[]} urls
 * @param {number} shards
 */
export function untilShared(urls, shards) {
  return until(`${urls.length} nodes to share ${shards} shards`, async () => {
    for (const url of urls) if (!(await isReady(url))) return false
    const owned = await Promise.all(urls.map(ownedBy))
    return sum(owned) === shards && Math.max(...owned) - Math.min(...owned) <= 1
  })
}

/**
 * The name of the node that owns a shard, once all nodes name the same one. Nodes learn it from heartbeats.
 * @param {string[]} urls
 * @param {number} shard
 * @returns {Promise<string>}
 */
export function ownerOf(urls, shard) {
  return until(`shard ${shard} to have an owner`, async () => {
    const reports = await Promise.all(urls.map((url) => call(`${url}/v1/server`)))
    const owners = reports.flatMap(({ cluster }) =>
      cluster.members.filter(({ owned_shards }) => owned_shards.includes(shard)),
    )
    const names = new Set(owners.map(({ node }) => node))
    return owners.length === urls.length && names.size === 1 && owners[0].node
  })
}

/**
 * Polls until there is a result.
 * @template T
 * @param {string} what is expected, for the error
 * @param {() => T | Promise<T>} look returns false or undefined while there is no result
 * @returns {Promise<T>}
 */
export async function until(what, look) {
  const untilMs = performance.now() + WAIT_MS_MAX
  for (;;) {
    const found = await look()
    if (found !== false && found !== undefined) return found
    if (performance.now() > untilMs) throw new Error(`Timed out waiting for ${what}`)
    await pause(POLL_MS)
  }
}

async function isReady(url) {
  const found = await fetch(`${url}/readyz`).catch(() => undefined)
  await found?.arrayBuffer()
  return found?.status === 200
}

function sum(numbers) {
  return numbers.reduce((all, number) => all + number, 0)
}
