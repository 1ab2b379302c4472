import { join } from 'node:path'
import { runScript } from '../child.mjs'
import { prepareLoad, runCleanly } from '../load.mjs'
import { benchUsers, loginRequests, registerAll } from '../logins.mjs'
import { agentNames, recordBody, writeRequests } from '../records.mjs'
import { countRecords, createAgents, credential, startProduct, startProductWithAuth } from '../server.mjs'
import { countedWrites } from './counted-writes.mjs'

const ingestScript = new URL('../generators/ingest-process.mjs', import.meta.url)
const AGENTS = 100
const WRITES = 2_000
const INGEST_AGENTS = 32
const INGEST_CONNECTIONS = 8
const BATCH_RECORDS = 1_000
const BATCHES = 8
const USERS = 128

/**
 * Strandfast, loaded over HTTP.
 * @type {import('./peer.mjs').Peer}
 */
export const strandfast = {
  name: 'Strandfast',
  kinds: ['writes', 'bulk', 'sign-in'],
  missing: () => undefined,
  async start({ plan, directory }, kind) {
    const dataDirectory = join(directory, `strandfast-${kind}`)
    const server = await (kind === 'sign-in'
      ? startProductWithAuth(dataDirectory)
      : startProduct(dataDirectory))
    const product = { url: server.url, plan, generator: { generator: plan.generator, directory } }
    const prepare = { writes: prepareWrites, bulk: prepareBulk, 'sign-in': prepareLogins }
    const contenders = await prepare[kind](product)
    return { version: '', contenders, stop: server.stop }
  },
}

async function prepareWrites({ url, generator }) {
  const agents = agentNames('writer', AGENTS)
  await createAgents(url, agents)
  const load = prepareLoad(writeRequests(agents, { count: WRITES, headers: credential }), generator)
  return ({ connections }) => [
    {
      name: 'Strandfast',
      role: 'ours',
      note: 'HTTP; each record signed, chained and on disk before its answer',
      measure: (seconds) =>
        countedWrites({ url, load, count: () => countRecords(url, agents) }, { connections, seconds }),
    },
  ]
}

async function prepareBulk({ url, plan, generator }) {
  const agents = agentNames('feed', INGEST_AGENTS)
  await createAgents(url, agents)
  const lines = Math.ceil(plan.bulkRecords / INGEST_AGENTS)
  const ingest = (signing) => async () => {
    const before = await countRecords(url, agents)
    const task = { url, agents, lines, connections: INGEST_CONNECTIONS, headers: credential, signing }
    const { accepted, elapsedMs } = await runScript(ingestScript, task)
    const recorded = (await countRecords(url, agents)) - before
    if (accepted !== lines * agents.length || recorded !== accepted)
      throw new Error(`${lines * agents.length} lines were sent and ${recorded} recorded`)
    return { value: (accepted / elapsedMs) * 1_000 }
  }
  const load = prepareLoad(batchRequests(agents), generator)
  const batches = async (seconds) => {
    const result = await runCleanly(load, url, { connections: 1, seconds })
    return { ...turnOf(result), value: result.perSecond * BATCH_RECORDS }
  }
  const ours = { role: 'ours' }
  return () => [
    {
      ...ours,
      name: 'Strandfast, NDJSON ingest, a signature a record',
      note: `HTTP, ${INGEST_CONNECTIONS} concurrent uploads; each record signed and chained; each group on disk before its answer`,
      measure: ingest('record'),
    },
    {
      ...ours,
      name: 'Strandfast, NDJSON ingest, a signature a group',
      note: `HTTP, ${INGEST_CONNECTIONS} concurrent uploads; each group signed, each record chained; on disk before the answer`,
      measure: ingest('group'),
    },
    {
      ...ours,
      name: 'Strandfast, batches of 1,000, a signature a group',
      note: 'HTTP, 1 connection, JSON; each batch signed, each record chained; on disk before the answer',
      measure: batches,
    },
  ]
}

function batchRequests(agents) {
  return Array.from({ length: BATCHES }, (_, batch) => {
    const records = Array.from({ length: BATCH_RECORDS }, (_, index) => ({ data: recordBody(index) }))
    return {
      method: 'POST',
      path: `/v1/agents/${agents[batch]}/records/batch?signing=group`,
      headers: { ...credential, 'content-type': 'application/json' },
      body: JSON.stringify({ records }),
    }
  })
}

async function prepareLogins({ url, generator }) {
  const users = benchUsers(USERS)
  await registerAll(`${url}/v1/auth/register`, users)
  const load = prepareLoad(loginRequests(users), generator)
  return ({ connections }) => [
    {
      name: 'Strandfast',
      role: 'ours',
      note: 'argon2id (19 MiB, 2 passes), Ed25519 token, session and signed audit record on disk',
      measure: async (seconds) => turnOf(await runCleanly(load, url, { connections, seconds })),
    },
  ]
}

function turnOf({ perSecond, p50Ms, p99Ms }) {
  return { value: perSecond, p50Ms, p99Ms }
}
