import { rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { checkedCall, newAgent, scopedKey } from '../support/http/answers.js'
import { eventually } from '../support/eventually.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

/** Runs `test` on a server, and removes its data afterwards. */
async function onServer(
  env: Record<string, string>,
  test: (server: TestServer, again: () => Promise<TestServer>) => Promise<void>,
): Promise<void> {
  let server = await startServer({ env })
  const { dataDir } = server
  const again = async () => {
    await server.halt('SIGKILL')
    server = await startServer({ env, dataDir })
    return server
  }
  try {
    await test(server, again)
  } finally {
    await server.halt()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function write(server: TestServer, agent: string): Promise<string> {
  return (await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data: { n: 1 } } })).body.id
}

/** The types and bodies of the records of a strand, after verifying it. */
async function recordsOn(server: TestServer, agent: string): Promise<Record<string, unknown>[]> {
  const { text } = await checkedCall(server, `GET /v1/strand/export?agent=${agent}`)
  const lines = text.trimEnd().split('\n')
  const { public_key: publicKey } = (await checkedCall(server, `GET /v1/agents/${agent}/status`)).body
  expect(await verifyExport(lines, { publicKey })).toMatchObject({ ok: true })
  return lines
    .slice(1, -1)
    .map((line): { h: string; body: string } => JSON.parse(line))
    .map(({ h, body }) => ({ type: /^type (.*)$/m.exec(h)?.[1], ...JSON.parse(body) }))
}

describe('a server that is killed', () => {
  it('applies proposals that became due before it listens again', async () => {
    await onServer({ SERVICE_GOVERNED_AUTO_APPROVE_SECS: '1' }, async (server, again) => {
      const agent = await newAgent(server, 'due', 'governed')
      const hash = await write(server, agent)
      const { body } = await checkedCall(server, `DELETE /v1/agents/${agent}/records/${hash}`)
      await server.halt('SIGKILL')
      await eventually(() => Date.now() > body.effective_at_ms)
      const next = await again()
      const shown = await checkedCall(next, `GET /v1/agents/${agent}/records/${hash}`)
      expect(shown.body.deleted).toBe(true)
      const records = await recordsOn(next, agent)
      expect(records.map(({ type }) => type).slice(2)).toEqual([
        'sys/proposal',
        'sys/tombstone',
        'sys/applied',
      ])
    })
  })

  it('applies proposals that become due while it runs', async () => {
    await onServer({ SERVICE_GOVERNED_AUTO_APPROVE_SECS: '1', SERVICE_SHARDS: '2' }, async (server) => {
      for (const name of ['one', 'two', 'three']) {
        const agent = await newAgent(server, name, 'governed')
        const hash = await write(server, agent)
        await checkedCall(server, `DELETE /v1/agents/${agent}/records/${hash}`)
        await eventually(async () => {
          return (await checkedCall(server, `GET /v1/agents/${agent}/records/${hash}`)).body.deleted
        })
      }
    })
  })

  it('makes each approval atomic that was in progress', async () => {
    await onServer({ SERVICE_SHARDS: '2' }, async (server, again) => {
      const { key } = await scopedKey(server, ['proposals:decide'])
      const agents = ['left', 'right']
      const ids: string[] = []
      for (const name of agents) {
        const agent = await newAgent(server, name, 'protected')
        for (let n = 0; n < 60; n++) {
          const hash = await write(server, agent)
          ids.push((await checkedCall(server, `DELETE /v1/agents/${agent}/records/${hash}`)).body.proposal_id)
        }
      }
      let answered = 0
      const approving = ids.map(async (id) => {
        await call(server, `POST /v1/proposals/${id}/approve`, { key })
        answered++
      })
      await eventually(() => answered > 0)
      const restarted = again()
      await Promise.allSettled(approving)
      const next = await restarted
      for (const agent of agents) {
        const records = await recordsOn(next, agent)
        const ended = new Set(
          records.filter(({ type }) => type === 'sys/applied').map((one) => one['proposal_seq']),
        )
        const voted = records.filter(({ type }) => type === 'sys/vote').map((one) => one['proposal_seq'])
        const deleted = records
          .filter(({ type }) => type === 'sys/tombstone')
          .map((one) => one['proposal_seq'])
        expect(new Set(voted)).toEqual(ended)
        expect(new Set(deleted)).toEqual(ended)
        const open = await checkedCall(next, `GET /v1/proposals?agent=${agent}&state=proposed&limit=1000`)
        expect(open.body.proposals).toHaveLength(60 - ended.size)
      }
    })
  })
})
