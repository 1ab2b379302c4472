// @run through a standby
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall, headOf, expectUnchanged, newAgent } from '../../support/http/answers.js'
import { otlpJson, service } from '../../support/http/otlp.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { type TestAnswer, type TestServer } from '../../support/server/server.js'
import { signUp, subjectOf } from '../../support/auth/users.js'

/* Row policies on all writes (docs/adr/0012-row-policies.md). */

let server: TestServer
let ann = ''
let bob = ''

beforeAll(async () => {
  server = await startAuthServer()
  ann = await signUp(server, 'ann@example.org')
  bob = await signUp(server, 'bob@example.org')
  for (const agent of ['notes', 'more', 'blind', 'bare', 'unwritable', 'erasable'])
    await newAgent(server, agent)
  const all = ['read', 'write', 'delete']
  await policies('notes', all)
  await policies('more', all)
  await policies('blind', ['write', 'delete'])
  await policies('unwritable', ['read'])
})
afterAll(() => server.stop())

async function policies(agent: string, actions: string[], field = 'owner'): Promise<void> {
  const conditions = [{ field, op: 'eq', value: '$jwt.sub' }]
  const body = { policies: [{ actions, conditions }] }
  expect((await checkedCall(server, `PUT /v1/agents/${agent}/policies`, { body })).status).toBe(200)
}

const own = (more: object = {}) => ({ owner: subjectOf(ann), ...more })
const foreign = (more: object = {}) => ({ owner: subjectOf(bob), ...more })

const ndjson = { 'content-type': 'application/x-ndjson' }
const text = (...lines: object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('')

/** Every route that appends one record to an agent, with its status on success. */
const appends: [name: string, status: number, send: (agent: string, data: object) => Promise<TestAnswer>][] =
  [
    [
      'records',
      201,
      (agent, data) => checkedCall(server, `POST /v1/agents/${agent}/records`, { key: ann, body: { data } }),
    ],
    [
      'collections',
      201,
      (agent, data) =>
        checkedCall(server, `POST /v1/collections/${agent}/records`, { key: ann, body: { data } }),
    ],
    [
      'a batch',
      201,
      (agent, data) =>
        checkedCall(server, `POST /v1/agents/${agent}/records/batch`, {
          key: ann,
          body: { records: [{ data: own() }, { data }] },
        }),
    ],
    [
      'a batch of a collection',
      201,
      (agent, data) =>
        checkedCall(server, `POST /v1/collections/${agent}/records/batch`, {
          key: ann,
          body: { records: [{ data }, { data: own() }] },
        }),
    ],
    [
      'a batch that is not atomic, of which nothing is good',
      201,
      (agent, data) =>
        checkedCall(server, `POST /v1/agents/${agent}/records/batch`, {
          key: ann,
          body: { records: [{ data }], atomic: false },
        }),
    ],
    [
      'ingest',
      201,
      (agent, data) => checkedCall(server, `POST /v1/ingest/${agent}`, { key: ann, body: data }),
    ],
  ]

const missing = ['absent', 'bare', 'unwritable']

describe.each(appends)('a write by %s', (_name, status, send) => {
  it('is accepted if a write policy allows its body', async () => {
    const before = (await headOf(server, 'notes'))?.seq ?? 0
    expect((await send('notes', own())).status).toBe(status)
    expect((await headOf(server, 'notes'))?.seq).toBeGreaterThan(before)
  })

  it.each([
    ['of another owner', () => foreign()],
    ['without the field', () => ({ n: 1 })],
    ['with the field of another type', () => ({ owner: [subjectOf(ann)] })],
  ])('is refused %s, and appends nothing', async (_what, data) => {
    const { status, body } = await expectUnchanged(server, 'notes', () => send('notes', data()))
    expect([status, body.code]).toEqual([403, 'forbidden'])
  })

  it.each(missing)('is refused with the same text for agent %s, and creates no agent', async (agent) => {
    const { status, body } = await expectUnchanged(server, agent, () => send(agent, own()))
    expect([status, body.code, body.detail]).toEqual([
      403,
      'forbidden',
      'No row policy of the agent allows this',
    ])
    expect(await headOf(server, 'absent')).toBeUndefined()
  })
})

it.each([
  ['records', 'POST /v1/agents/org::notes/records'],
  ['a batch', 'POST /v1/agents/org::notes/records/batch'],
  ['ingest', 'POST /v1/ingest/org::notes'],
])('refuses %s to an agent of an organism: the token is of the root namespace', async (_name, route) => {
  const { status, body } = await checkedCall(server, route, { key: ann, body: { data: own() } })
  expect([status, body.code]).toEqual([403, 'forbidden'])
  expect(body.detail).toBe('This token is of another namespace than agent "org::notes"')
})

describe('a batch', () => {
  it('contains the error for each refused record if it is not atomic', async () => {
    const before = (await headOf(server, 'notes'))?.seq ?? 0
    const records = [{ data: own({ n: 1 }) }, { data: foreign() }, { data: own({ n: 2 }) }]
    const body = { records, atomic: false }
    const answer = await checkedCall(server, 'POST /v1/agents/notes/records/batch', { key: ann, body })
    expect(answer.status).toBe(201)
    const { results } = answer.body
    expect(results.map((one: { seq?: number }) => one.seq)).toEqual([before + 1, undefined, before + 2])
    expect(results[1].error.code).toBe('forbidden')
    expect((await headOf(server, 'notes'))?.seq).toBe(before + 2)
  })

  it('is refused completely if it is atomic, with the index of each record', async () => {
    const body = { records: [{ data: own() }, { data: foreign() }, { data: {} }] }
    const answer = await expectUnchanged(server, 'notes', () =>
      checkedCall(server, 'POST /v1/agents/notes/records/batch', { key: ann, body }),
    )
    expect(answer.status).toBe(403)
    expect(answer.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual([
      '/records/1/data',
      '/records/2/data',
    ])
  })
})

describe('lines', () => {
  const mixed = () => text(own({ n: 1 }), foreign(), own({ n: 2 }))
  const send = (path: string, raw: string | Uint8Array, headers = {}) =>
    checkedCall(server, `POST /v1/ingest${path}`, { key: ann, raw, headers: { ...ndjson, ...headers } })
  const faults = (answer: TestAnswer) =>
    answer.body.errors.map(({ line, code }: { line: number; code: string }) => `${line} ${code}`)

  it('are checked individually', async () => {
    const before = (await headOf(server, 'notes'))?.seq ?? 0
    const answer = await send('/notes', mixed())
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ accepted: 2, rejected: 1, last_seq: before + 2 })
    expect(faults(answer)).toEqual(['2 forbidden'])
    const packed = await send('/notes', gzipSync(mixed()), { 'content-encoding': 'gzip' })
    expect(packed.body).toMatchObject({ accepted: 2, rejected: 1, last_seq: before + 4 })
  })

  it('are all skipped if one is refused with on_error=reject_all', async () => {
    const answer = await expectUnchanged(server, 'notes', () => send('/notes?on_error=reject_all', mixed()))
    expect([answer.status, answer.body.code]).toEqual([422, 'ingest_rejected'])
    expect(faults(answer)).toEqual(['2 forbidden'])
  })

  it.each(missing)('are refused completely for agent %s', async (agent) => {
    for (const query of ['', '?on_error=reject_all']) {
      const answer = await expectUnchanged(server, agent, () => send(`/${agent}${query}`, mixed()))
      expect([answer.status, answer.body.code]).toEqual([403, 'forbidden'])
    }
    expect(await headOf(server, 'absent')).toBeUndefined()
  })

  const agents = ['notes', 'more', 'bare', 'unwritable', 'absent', 'org::notes']
  const ofMany = () =>
    text(...agents.map((agent) => ({ agent, data: own() })), { agent: 'more', data: foreign() })

  it('are checked against the policies of each named agent', async () => {
    const before = await Promise.all(agents.map((agent) => headOf(server, agent)))
    const answer = await send('', ofMany())
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ accepted: 2, rejected: 5 })
    expect(faults(answer)).toEqual([3, 4, 5, 6, 7].map((line) => `${line} forbidden`))
    const after = await Promise.all(agents.map((agent) => headOf(server, agent)))
    expect(after.slice(2)).toEqual(before.slice(2))
    expect(after[0]?.seq).toBe((before[0]?.seq ?? 0) + 1)
  })

  it('are written all or none for many agents', async () => {
    const before = await Promise.all(agents.map((agent) => headOf(server, agent)))
    const answer = await send('?on_error=reject_all', ofMany())
    expect([answer.status, answer.body.code]).toEqual([422, 'ingest_rejected'])
    expect(await Promise.all(agents.map((agent) => headOf(server, agent)))).toEqual(before)
    const good = text({ agent: 'notes', data: own() }, { agent: 'more', data: own() })
    expect((await send('?on_error=reject_all', good)).body).toMatchObject({ accepted: 2, rejected: 0 })
  })
})

describe('records of OTLP', () => {
  it('are checked individually, with the agent of the path or of their resource', async () => {
    await newAgent(server, 'telemetry')
    await policies('telemetry', ['write'], 'severityText')
    const before = await headOf(server, 'telemetry')
    const records = [ann, bob].map((user) => ({ severityText: subjectOf(user) }))
    const groups = ['telemetry', 'absent'].map((name) => ({ resource: service(name), records }))
    const send = (path: string, of: typeof groups) =>
      checkedCall(server, `POST ${path}`, { key: ann, body: otlpJson('logs', of) })
    const ofResource = await send('/v1/logs', groups)
    expect(ofResource.body.partialSuccess).toEqual({
      rejectedLogRecords: '3',
      errorMessage: expect.stringMatching(/^record 2: forbidden: .*; record 3: forbidden: .*; record 4: /),
    })
    const ofPath = await send('/v1/otlp/telemetry/v1/logs', groups.slice(0, 1))
    expect(ofPath.body.partialSuccess.rejectedLogRecords).toBe('1')
    // The policy does not allow the records in which refused ones are stored.
    const kept = await send('/v1/otlp/telemetry/v1/logs?on_error=keep', groups.slice(0, 1))
    expect([kept.status, kept.body.code, kept.body.rejected]).toEqual([400, 'ingest_rejected', 1])
    expect((await headOf(server, 'telemetry'))?.record_count).toBe((before?.record_count ?? 0) + 3)
    expect(await headOf(server, 'absent')).toBeUndefined()
    const missing = await send('/v1/otlp/absent/v1/logs', groups.slice(0, 1))
    expect([missing.status, missing.body.code]).toEqual([403, 'forbidden'])
  })
})

describe('deletes and restores', () => {
  const write = async (data: object, agent = 'notes') =>
    (await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data } })).body.id
  const remove = (hash: string, agent = 'notes', key = ann) =>
    checkedCall(server, `DELETE /v1/agents/${agent}/records/${hash}`, { key })
  const restore = (hash: string, agent = 'notes', key = ann) =>
    checkedCall(server, `POST /v1/agents/${agent}/records/${hash}/restore`, { key })

  it('are accepted if a delete policy allows the record', async () => {
    const hash = await write(own())
    expect((await remove(hash)).status).toBe(200)
    expect((await remove(hash)).body.code).toBe('already_deleted')
    expect((await restore(hash)).status).toBe(200)
    expect((await restore(hash)).body.code).toBe('not_deleted')
    expect((await remove(await write(own(), 'blind'), 'blind')).status).toBe(200)
  })

  it('do not find records that the user may not read', async () => {
    const hash = await write(foreign())
    const none = '0'.repeat(64)
    for (const act of [remove, restore]) {
      const hidden = await expectUnchanged(server, 'notes', () => act(hash))
      expect([hidden.status, hidden.body.code]).toEqual([404, 'record_not_found'])
      const absent = await act(none)
      expect(absent.body.detail).toBe(hidden.body.detail.replace(hash, none))
    }
    expect((await remove(hash, 'notes', bob)).status).toBe(200)
  })

  it('are refused for a record that the user may only read', async () => {
    const hash = await write(own(), 'unwritable')
    for (const act of [remove, restore]) {
      const answer = await expectUnchanged(server, 'unwritable', () => act(hash, 'unwritable'))
      expect([answer.status, answer.body.code]).toEqual([403, 'forbidden'])
    }
  })

  it('are refused on agents without a delete policy, existing or not', async () => {
    const hash = await write(own(), 'bare')
    for (const agent of ['bare', 'absent', 'org::notes']) {
      for (const act of [remove, restore]) {
        const { status, body } = await expectUnchanged(server, agent, () => act(hash, agent))
        expect([status, body.code]).toEqual([403, 'forbidden'])
      }
    }
  })
})

describe('erasing', () => {
  const write = async (data: object, agent: string) =>
    (await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data } })).body.id
  const erase = (hash: string, agent: string) =>
    checkedCall(server, `POST /v1/agents/${agent}/records/${hash}/erase`, { key: ann })

  it('requires a separate policy: one that allows deleting does not allow it', async () => {
    const kept = await write(own(), 'notes')
    const refused = await expectUnchanged(server, 'notes', () => erase(kept, 'notes'))
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden'])
    await policies('erasable', ['read', 'erase'])
    const hash = await write(own(), 'erasable')
    const deleted = await checkedCall(server, `DELETE /v1/agents/erasable/records/${hash}`, { key: ann })
    expect([deleted.status, deleted.body.code]).toEqual([403, 'forbidden'])
    expect((await erase(hash, 'erasable')).body).toMatchObject({ state: 'erased' })
  })

  it('finds no record that the user may not read', async () => {
    await policies('erasable', ['read', 'erase'])
    const hash = await write(foreign(), 'erasable')
    const hidden = await expectUnchanged(server, 'erasable', () => erase(hash, 'erasable'))
    expect([hidden.status, hidden.body.code]).toEqual([404, 'record_not_found'])
  })
})

describe('a user’s write options', () => {
  const stale = { 'if-match': `"${'0'.repeat(64)}"` }

  it('reveal the current head only to users who may read', async () => {
    for (const [agent, named] of [
      ['notes', true],
      ['blind', false],
    ] as const) {
      const call = { key: ann, body: { data: own() }, headers: stale }
      const answer = await expectUnchanged(server, agent, () =>
        checkedCall(server, `POST /v1/agents/${agent}/records`, call),
      )
      expect([answer.status, answer.body.code]).toEqual([412, 'head_mismatch'])
      const head = await headOf(server, agent)
      expect(answer.body.chain_head).toBe(named ? head?.chain_head : undefined)
      expect(answer.text.includes(head?.chain_head ?? '')).toBe(named)
    }
    const call = { key: ann, body: { data: own() }, headers: stale }
    expect((await checkedCall(server, 'POST /v1/agents/bare/records', call)).status).toBe(403)
  })

  it('keep Idempotency-Keys apart by user', async () => {
    const headers = { 'idempotency-key': 'same' }
    const write = (key: string, data: object) =>
      checkedCall(server, 'POST /v1/agents/notes/records', { key, body: { data }, headers })
    const first = await write(ann, own())
    const again = await write(ann, own())
    expect([again.headers.get('idempotency-replayed'), again.text]).toEqual(['true', first.text])
    const other = await write(bob, foreign())
    expect([other.status, other.headers.get('idempotency-replayed')]).toEqual([201, null])
    const refused = await expectUnchanged(server, 'notes', () => write(bob, own()))
    expect(refused.status).not.toBe(201)
  })

  it('apply after a change of policies too', async () => {
    await newAgent(server, 'changing')
    const write = () =>
      checkedCall(server, 'POST /v1/agents/changing/records', { key: ann, body: { data: own() } })
    expect((await write()).status).toBe(403)
    await policies('changing', ['write'])
    expect((await write()).status).toBe(201)
    await policies('changing', ['read'])
    expect((await expectUnchanged(server, 'changing', write)).status).toBe(403)
  })
})

it('does not affect keys, and logs nothing', async () => {
  const call = { body: { data: foreign() } }
  expect((await checkedCall(server, 'POST /v1/agents/notes/records', call)).status).toBe(201)
  expect((await checkedCall(server, 'POST /v1/collections/emerging/records', call)).status).toBe(201)
  expect(server.stderr()).toBe('')
})
