// @run on node:http
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { logIn, ownedAgent, register } from '../support/auth/accounts.js'
import { checkedCall, headOf, newAgent, scopedKey } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { eventually } from '../support/eventually.js'
import { exportOf, fill, linesOf } from '../support/shard/imports.js'
import { openUpload, untilRequestsInFlight, type UploadCall } from '../support/http/open-upload.js'
import type { TestServer } from '../support/server/server.js'
import { subjectOf } from '../support/auth/users.js'

/*
 * Regression test for credentials that end during an upload: the upload could continue. Now no more lines are
 * accepted, written lines stay, and the answer contains their number.
 */

let server: TestServer

beforeAll(async () => {
  // An upload and the end of its credential often reach different fronts.
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2', SERVICE_FRONTS: '2' } })
})
afterAll(() => server.stop())

const open = (path: string, { on = server, ...options }: UploadCall & { on?: TestServer }) =>
  openUpload(on, path, options)

const seqOf = async (agent: string) => (await headOf(server, agent))?.seq ?? 0

/**
 * All ways in which a credential can end: each creates a credential for ingest, and a function that ends it.
 */
const ends: [name: string, code: string, make: (agent: string) => Promise<Ending>][] = [
  [
    'a key that is deleted',
    'unauthorized',
    async () => {
      const { key, key_id: id } = await scopedKey(server, ['ingest', 'records:write'])
      return { key, end: () => checkedCall(server, `DELETE /v1/admin/api-keys/${id}`) }
    },
  ],
  [
    'a session that is ended',
    'token_revoked',
    async (agent) => {
      const account = await register(server, `${agent}@example.org`)
      const { token } = await logIn(server, account)
      return { key: token, end: () => checkedCall(server, 'POST /v1/auth/logout', { key: token, body: {} }) }
    },
  ],
  [
    'a user who is deleted',
    'token_revoked',
    async (agent) => {
      const { token } = await register(server, `${agent}@example.org`)
      return { key: token, end: () => checkedCall(server, `DELETE /v1/auth/users/${agent}@example.org`) }
    },
  ],
]

interface Ending {
  key: string
  end(): Promise<{ status: number }>
}

describe.each(ends)('%s', (_name, code, make) => {
  const nameOf = (prefix: string) => `${prefix}-${code}-${Math.random().toString(36).slice(2)}`

  it('ends an open upload, and the answer has the number of written lines', async () => {
    const agent = await ownedAgent(server, nameOf('open'))
    const { key, end } = await make(agent)
    const line = `${JSON.stringify({ owner: key.includes('.') ? subjectOf(key) : '' })}\n`
    const before = await seqOf(agent)
    const upload = open(`/v1/ingest/${agent}`, { key })
    upload.send(line.repeat(3))
    await eventually(async () => (await seqOf(agent)) >= before + 3)
    expect((await end()).status).toBeLessThan(300)
    const { status, body } = await upload.answered
    expect([status, body.code, body.accepted]).toEqual([401, code, 3])
    expect(await seqOf(agent)).toBe(before + 3)
  })

  it('ends a fast upload before the end is answered: nothing is written after that', async () => {
    const agent = await ownedAgent(server, nameOf('fast'))
    const { key, end } = await make(agent)
    const before = await seqOf(agent)
    const line = `${JSON.stringify({ owner: key.includes('.') ? subjectOf(key) : '' })}\n`
    const uploads = [open(`/v1/ingest/${agent}`, { key }), open(`/v1/ingest/${agent}`, { key })]
    for (const { send } of uploads) send(line.repeat(400_000))
    await eventually(async () => (await seqOf(agent)) > before)
    expect((await end()).status).toBeLessThan(300)
    const written = await seqOf(agent)
    const answers = await Promise.all(uploads.map(({ answered }) => answered))
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual(answers.map(() => [401, code]))
    expect(await seqOf(agent)).toBe(written)
    expect(answers.reduce((sum, { body }) => sum + body.accepted, before)).toBe(written)
    expect(written - before).toBeLessThan(800_000)
  })

  it('ends an atomic upload or one of a single record, and nothing is written', async () => {
    const agent = await ownedAgent(server, nameOf('whole'))
    const { key, end } = await make(agent)
    const before = await seqOf(agent)
    const uploads = [
      open(`/v1/ingest/${agent}?on_error=reject_all`, { key }),
      open(`/v1/ingest/${agent}`, { key, contentType: 'application/json' }),
      open(`/v1/agents/${agent}/records`, { key, contentType: 'application/json' }),
      open(`/v1/agents/${agent}/records/batch`, { key, contentType: 'application/json' }),
    ]
    for (const upload of uploads) upload.send('{"data":')
    await untilRequestsInFlight(server, uploads.length)
    expect((await end()).status).toBeLessThan(300)
    for (const { answered } of uploads) {
      const { status, body } = await answered
      expect([status, body.code]).toEqual([401, code])
    }
    expect(await seqOf(agent)).toBe(before)
  })
})

it('the expiry of a token ends an upload of its user', async () => {
  const brief = await startAuthServer({ env: { SERVICE_AUTH_JWT_EXPIRY_SECS: '5' } })
  try {
    const agent = await ownedAgent(brief, 'brief')
    const { token } = await register(brief, 'brief@example.org')
    const upload = open(`/v1/ingest/${agent}`, { key: token, on: brief })
    upload.send(`${JSON.stringify({ owner: subjectOf(token) })}\n`)
    const { status, body } = await upload.answered
    expect([status, body.code, body.accepted]).toEqual([401, 'token_expired', 1])
  } finally {
    await brief.stop()
  }
})

it('the deletion of a key ends its import, and the answer has the number of imported records', async () => {
  await newAgent(server, 'exported')
  await fill(server, 'exported', { from: 0, count: 1_000 })
  await fill(server, 'exported', { from: 1_000, count: 1_000 })
  const lines = linesOf(await exportOf(server, 'exported'))
  const { key, key_id: id } = await scopedKey(server, ['agents:admin'])
  const upload = open('/v1/strand/import', { key })
  upload.send(`${lines.slice(0, 1_500).join('\n')}\n`)
  // The server has all records already, so it skips them.
  await untilRequestsInFlight(server, 1)
  expect((await checkedCall(server, `DELETE /v1/admin/api-keys/${id}`)).status).toBeLessThan(300)
  const { status, body } = await upload.answered
  expect([status, body.code, body.imported]).toEqual([401, 'unauthorized', 0])
  expect(body.skipped).toBeLessThan(1_500)
})
