import { join } from 'node:path'
import { prepareLoad } from '../load.mjs'
import { agentNames, writeRequests } from '../records.mjs'
import { createAgents, credential, startProduct } from '../server.mjs'
import { alternate } from './alternation.mjs'
import { shuffled, store } from './get.mjs'

const AGENTS = 100
const REQUESTS = 2_000
/** Few enough for each front to cache all of them during the warm-up. */
const STORED_RECORDS = 1_000

/**
 * Two fronts compared with one under the same load. On two cores a second front cannot help, but it must not
 * cost more than a tenth (docs/adr/0045-fronts.md).
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function fronts(bench) {
  const { plan, directory, report } = bench
  const agents = agentNames('writer', AGENTS)
  const { generator } = plan
  const writes = prepareLoad(writeRequests(agents, { count: REQUESTS, headers: credential }), {
    generator,
    directory,
  })
  const started = await Promise.all(
    [2, 1].map((count) =>
      startProduct(join(directory, `fronts-${count}`), { SERVICE_FRONTS: String(count) }),
    ),
  )
  try {
    const servers = []
    for (const { url } of started) {
      await createAgents(url, agents)
      const paths = await store(url, STORED_RECORDS)
      const requests = shuffled(paths).map((path) => ({ method: 'GET', path, headers: credential }))
      servers.push({ url, reads: prepareLoad(requests, { generator, directory }) })
    }
    const [two, one] = servers
    const compared = async (name, connections, loadOf) => {
      report(name)
      const turn = await alternate(bench, {
        product: { url: two.url, load: loadOf(two) },
        ceiling: { url: one.url, load: loadOf(one) },
        connections,
      })
      const { value, ceiling, ratio, also } = turn
      return { name, value, unit: 'requests/s', ceiling, ratio, also, target: { ratio: 0.9 } }
    }
    return [
      await compared('durable writes by 2 fronts, by those by 1, 64 connections', 64, () => writes),
      await compared('durable writes by 2 fronts, by those by 1, 512 connections', 512, () => writes),
      await compared('get by hash by 2 fronts, by 1, 64 connections', 64, ({ reads }) => reads),
    ]
  } finally {
    await Promise.all(started.map((product) => product.stop()))
  }
}
