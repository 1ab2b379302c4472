import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openEnvironment } from '../../workers/store/open-environment.js'
import { expiryKey } from '../../workers/store/tables/tables.js'
import { eventually } from '../support/eventually.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { fill } from '../support/shard/imports.js'
import { call, startServer } from '../support/server/server.js'

/* A directory whose row was changed: the server starts, and says that it could not handle the row. */

const entry = join(import.meta.dirname, '../../dist/program/strandfast.js')
const env = { SERVICE_SHARDS: '1' }

it('a changed proposal that is due ends no thread, and the metrics, the log and doctor show it', async () => {
  const first = await startServer({ env })
  const agent = await newAgent(first, 'changed', 'governed')
  const [hash] = await fill(first, agent, { from: 0, count: 1 })
  expect((await checkedCall(first, `DELETE /v1/agents/${agent}/records/${hash}`)).status).toBe(202)
  await first.halt()
  const { dataDir } = first
  const environment = openEnvironment(join(dataDir, 'shard-0'), 'write')
  const [key] = [...environment.proposals.getKeys({})].map((one) => Buffer.from(one))
  if (key === undefined) throw new Error('Expected a proposal')
  const row = String(environment.proposals.get(key)).replace('"targetSeq":1', `"targetSeq":${2 ** 53 - 1}`)
  environment.root.transactionSync(() => {
    environment.proposals.put(key, Buffer.from(row))
    environment.proposalDues.put(expiryKey(1, key), Buffer.alloc(0))
  })
  await environment.root.close()
  const server = await startServer({ env, dataDir })
  try {
    const metrics = async () => (await call(server, 'GET /metrics')).text
    await eventually(async () => (await metrics()).includes('strandfast_rows_set_aside{shard="0"} 1'))
    expect(await metrics()).toContain('strandfast_shard_ends_total{shard="0"} 0')
    await fill(server, agent, { from: 1, count: 1 })
    expect(server.stderr()).toContain('was set aside')
    const { stdout } = spawnSync(process.execPath, [entry, 'doctor'], {
      env: { PATH: process.env['PATH'], ...env, SERVICE_DATA_DIR: dataDir },
      encoding: 'utf8',
    })
    expect(stdout).toMatch(/^warn {2}set aside +1 rows could not be handled/m)
  } finally {
    await server.halt()
  }
})
