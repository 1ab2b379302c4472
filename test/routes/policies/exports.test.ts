import { afterAll, beforeAll, expect, it } from 'vitest'
import { verifyExport as verifyInClient } from '../../../src/client/index.js'
import { verifyExport } from '../../../src/proof/node/verify-export.js'
import { checkedCall, newAgent } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'
import { signUp, subjectOf } from '../../support/auth/users.js'

/*
 * Row policies on exports: the chain is complete, and hidden records have neither salt nor body
 * (docs/FORMAT.md).
 */

let server: TestServer
let ann = ''
let publicKey = ''

beforeAll(async () => {
  server = await startAuthServer()
  ann = await signUp(server, 'ann@example.org')
  await newAgent(server, 'notes')
  publicKey = (await checkedCall(server, 'GET /v1/agents/notes/status')).body.public_key
  const owners = (count: number) =>
    Array.from({ length: count }, (_none, n) => ({
      data: n % 3 === 0 ? { owner: subjectOf(ann), n } : { owner: 'usr_other', secret: `hidden-${n}` },
    }))
  const batch = (query: string, count: number) =>
    checkedCall(server, `POST /v1/agents/notes/records/batch${query}`, { body: { records: owners(count) } })
  await batch('', 10)
  await batch('?signing=group', 20)
  const conditions = [{ field: 'owner', op: 'eq', value: '$jwt.sub' }]
  const body = { policies: [{ actions: ['read'], conditions }] }
  await checkedCall(server, 'PUT /v1/agents/notes/policies', { body })
})
afterAll(() => server.stop())

async function linesOf(query: string, key = ann): Promise<string[]> {
  const answer = await checkedCall(server, `GET /v1/strand/export?agent=notes${query}`, { key })
  expect(answer.status).toBe(200)
  return answer.text.slice(0, -1).split('\n')
}

it.each([
  ['whole', '', { records: 32, withheld: 20, sealed: 19, partial: false }],
  ['in part', '&from_seq=2&to_seq=6', { records: 5, withheld: 4, partial: true }],
  ['with a sealed end', '&to_seq=12', { records: 31, withheld: 19, partial: false }],
])('a user’s export %s verifies, in the client too', async (_name, query, expected) => {
  const lines = await linesOf(query)
  const result = await verifyExport(lines, { publicKey })
  expect(result).toMatchObject({ ok: true, erased: 0, checkpoint: true, ...expected })
  expect(await verifyInClient(`${lines.join('\n')}\n`, { publicKey })).toEqual(result)
})

it('contains records that a policy shows and the genesis record, and only headers of the others', async () => {
  const own = (await linesOf('')).slice(1, -1).map((line) => JSON.parse(line))
  const all = (await linesOf('', server.rootKey)).slice(1, -1).map((line) => JSON.parse(line))
  expect(own.map(({ h }) => h)).toEqual(all.map(({ h }) => h))
  const shown = own.filter(({ body }) => body !== undefined)
  expect(shown[0]).toEqual(all[0])
  expect(JSON.parse(shown[0].body).agent).toBe('notes')
  expect(shown.slice(1).map(({ body }) => JSON.parse(body).owner)).toEqual(
    Array.from({ length: 11 }, () => subjectOf(ann)),
  )
  for (const line of own.filter(({ body }) => body === undefined)) {
    expect(Object.keys(line).toSorted()).toEqual(
      ['h', line.sig === undefined ? 'sealed_by' : 'sig', 'withheld'].toSorted(),
    )
    expect(line.withheld).toBe(true)
  }
})

it('contains nothing of a hidden record, including its salt', async () => {
  const own = (await linesOf('')).join('\n')
  const hidden = (await linesOf('', server.rootKey)).filter((line) => /hidden-|policies/.test(line))
  expect(hidden).toHaveLength(20)
  for (const line of hidden) {
    const { salt, body } = JSON.parse(line)
    expect(own).not.toContain(salt)
    expect(own).not.toContain(JSON.stringify(body).slice(1, -1))
  }
})

it('does not verify if a shown body is changed, or a shown record is marked as withheld and its header changed', async () => {
  const lines = await linesOf('')
  const forged = lines.map((line) => line.replace('\\"n\\":9', '\\"n\\":8'))
  expect(forged).not.toEqual(lines)
  expect((await verifyExport(forged, { publicKey })).ok).toBe(false)
  const renamed = lines.map((line) =>
    line.includes('"withheld":true') ? line.replace('type record', 'type recore') : line,
  )
  expect((await verifyExport(renamed, { publicKey })).ok).toBe(false)
})

it('does not change exports of keys, and logs nothing', async () => {
  const result = await verifyExport(await linesOf('', server.rootKey), { publicKey })
  expect(result).toMatchObject({ ok: true, records: 32, withheld: 0 })
  expect(server.stderr()).toBe('')
})
