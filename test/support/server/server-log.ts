import { eventually } from '../eventually.js'
import { call, type ServerAddress } from './server.js'

/** A head in the form of the log's records. */
export interface TestHead {
  strand: string
  size: number
  hash: string
}

/** The bodies of all records of the server log except genesis, in order. */
export async function logRecords(
  server: ServerAddress,
): Promise<{ clocks: string[]; heads: [string, number, string][] }[]> {
  const exported = await call(server, 'GET /v1/strand/export?agent=server::log')
  const lines = exported.text.trimEnd().split('\n').slice(2, -1)
  return lines.map((line) => JSON.parse(JSON.parse(line).body))
}

/** The current head of an agent's strand. */
export async function headNow(server: ServerAddress, agent: string): Promise<TestHead> {
  const [status, head] = await Promise.all([
    call(server, `GET /v1/agents/${agent}/status`),
    call(server, `GET /v1/agents/${agent}/head`),
  ])
  return { strand: status.body.strand, size: head.body.seq + 1, hash: head.body.chain_head }
}

/**
 * Resolves when the log contains the current heads of these agents, which must not change during the wait.
 */
export async function untilLogged(server: ServerAddress, agents: readonly string[]): Promise<void> {
  for (const agent of agents) {
    const head = await headNow(server, agent)
    await eventually(async () => {
      const { status, body } = await call(server, `GET /v1/log/proof?agent=${agent}`)
      return status === 200 && body.size === head.size && body.hash === head.hash
    })
  }
}
