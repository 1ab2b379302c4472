import { join } from 'node:path'
import { prepareLoad } from '../load.mjs'
import { benchUsers, registerAll } from '../logins.mjs'
import { agentNames, recordBody } from '../records.mjs'
import { call, createAgents, credential, startProductWithAuth } from '../server.mjs'
import { alternate } from './alternation.mjs'

const AGENTS = 100
/** Few enough that the warm-up reads each of them: the comparison is about repeated reads, from memory. */
const RECORDS_EACH = 50
const WRITES = 2_000
const CONNECTIONS = 64
const TARGET = { ratio: 0.8 }

/**
 * The cost of a user's token: the same writes and reads by hash, alternately with the token of a user whose
 * row policy allows only the user's own records, and with the root key. The ceiling is the root key's rate.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function userTokens(bench) {
  const { directory, report } = bench
  const product = await startProductWithAuth(join(directory, 'user-tokens'))
  try {
    const user = await signIn(product.url)
    const agents = agentNames('owned', AGENTS)
    await createAgents(product.url, agents)
    await allowOwner(product.url, agents)
    const paths = await store(product.url, agents, user.id)
    await checkPolicy(product.url, { path: paths[0], agent: agents[0], user })
    const measured = []
    for (const { name, unit, requestsWith } of [
      { name: 'durable writes', unit: 'writes/s', requestsWith: writesOf(agents, user.id) },
      { name: 'get by hash', unit: 'reads/s', requestsWith: readsOf(paths) },
    ]) {
      report(`${name}, a user's token and the root key, ${CONNECTIONS} connections`)
      const load = (headers) =>
        prepareLoad(requestsWith(headers), { generator: bench.plan.generator, directory })
      const turn = await alternate(bench, {
        product: { url: product.url, load: load(user.headers) },
        ceiling: { url: product.url, load: load(credential) },
        connections: CONNECTIONS,
      })
      const { value, ceiling, ratio, also } = turn
      const whole = `${name} with a user's token, by those with the root key`
      measured.push({ name: whole, value, unit, ceiling, ratio, target: TARGET, also })
    }
    return measured
  } finally {
    await product.stop()
  }
}

async function signIn(url) {
  const [body] = benchUsers(1)
  await registerAll(`${url}/v1/auth/register`, [body])
  const { token } = await call(`${url}/v1/auth/login`, { body })
  const { sub } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString())
  return { id: sub, headers: { authorization: `Bearer ${token}` } }
}

/** Allows each user to write and read the records that name it as their owner. */
async function allowOwner(url, agents) {
  const conditions = [{ field: 'owner', op: 'eq', value: '$jwt.sub' }]
  const policies = [{ actions: ['read', 'write'], conditions }]
  for (const agent of agents)
    await call(`${url}/v1/agents/${agent}/policies`, { method: 'PUT', body: { policies } })
}

/** Stores records of the owner. Returns the path of each; neighbors belong to different agents. */
async function store(url, agents, owner) {
  const paths = []
  for (const [index, agent] of agents.entries()) {
    const records = Array.from({ length: RECORDS_EACH }, (_, number) => ({
      data: { ...recordBody(index * RECORDS_EACH + number), owner },
    }))
    const written = await call(`${url}/v1/agents/${agent}/records/batch`, { body: { records }, status: 201 })
    written.results.forEach(({ content_hash }, number) => {
      paths[number * agents.length + index] = `/v1/agents/${agent}/records/${content_hash}`
    })
  }
  return paths
}

/** Checks that the user can read its record, and can neither write nor read one of another owner. */
async function checkPolicy(url, { path, agent, user }) {
  const records = `/v1/agents/${agent}/records`
  await call(`${url}${path}`, { headers: user.headers })
  const body = { data: { ...recordBody(1), owner: 'someone else' } }
  await call(`${url}${records}`, { headers: user.headers, body, status: 403 })
  const { content_hash } = await call(`${url}${records}`, { body, status: 201 })
  await call(`${url}${records}/${content_hash}`, { headers: user.headers, status: 404 })
}

function writesOf(agents, owner) {
  return (headers) =>
    Array.from({ length: WRITES }, (_, number) => ({
      method: 'POST',
      path: `/v1/agents/${agents[number % agents.length]}/records`,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ data: { ...recordBody(number), owner } }),
    }))
}

function readsOf(paths) {
  return (headers) => paths.map((path) => ({ method: 'GET', path, headers }))
}
