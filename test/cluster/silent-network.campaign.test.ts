import { once } from 'node:events'
import { type MessagePort, Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pooledRandom } from '../../src/base/random.js'
import { SegmentRegister } from '../../src/cluster/database/register.js'
import { statementsOf } from '../../src/cluster/database/statements.js'
import type { LogRequest } from '../../src/protocol/cluster-log-messages.js'
import { firstSegment } from '../../workers/store/replica/cluster-segment.js'
import { logSettings, shardLine } from '../support/cluster/shard-line.js'
import { startTcpProxy, type TcpProxy } from '../support/cluster/tcp-proxy.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'

const tables = 'test'
const statements = statementsOf(tables)

describe.skipIf(noPostgres)('a connection to the database on which all packets are lost', () => {
  let postgres: TestPostgres
  let proxy: TcpProxy
  let thread: Worker

  beforeAll(async () => {
    postgres = await makePostgres()
    await postgres.start()
    for (const statement of statements.create) await postgres.query(statement)
    const register = new SegmentRegister({
      urls: [postgres.url],
      statements,
      nowMs: () => 0,
      chance: () => 0,
    })
    await register.begin(
      firstSegment(0, { cluster: '07'.repeat(16), masterSeed: Buffer.alloc(32, 7), random: pooledRandom() }),
    )
    await register.close()
    const port = Number(new URL(postgres.url).port)
    proxy = await startTcpProxy(port)
    const url = postgres.url.replace(`:${port}/`, `:${proxy.port}/`)
    const script = new URL('../../dist/workers/cluster-log.js', import.meta.url)
    thread = new Worker(script, { workerData: logSettings([url], tables) })
  })

  afterAll(async () => {
    await thread?.terminate()
    await proxy?.stop()
    await postgres?.remove()
  })

  const send = async (port: MessagePort, request: LogRequest): Promise<{ kind: string }> => {
    port.postMessage(request)
    const [answer] = await once(port, 'message')
    return answer
  }

  it('blocks no request forever: a request fails, and succeeds when it is repeated', async () => {
    const requests: LogRequest[] = [
      { kind: 'isAlive', node: 'a', incarnation: 1 },
      { kind: 'read', after: { segment: -1, part: 0 }, rows: 1 },
      { kind: 'lastCheckpoint' },
    ]
    const requestPorts = requests.map((request) => ({ request, port: shardLine(thread, 0).port }))
    const kinds = () =>
      Promise.all(requestPorts.map(async ({ port, request }) => (await send(port, request)).kind))
    const answered = ['isAlive', 'rows', 'lastCheckpoint']
    expect(await kinds()).toEqual(answered)
    proxy.hold()
    expect(await kinds()).toEqual(['failed', 'failed', 'failed'])
    proxy.heal()
    expect(await kinds()).toEqual(answered)
    for (const { port } of requestPorts) port.close()
  })
})
