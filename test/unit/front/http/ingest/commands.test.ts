import { describe, expect, it } from 'vitest'
import type { Namespace } from '../../../../../src/auth/namespace.js'
import type { Shards } from '../../../../../src/dispatch/links/shards.js'
import { addressLines } from '../../../../../src/front/http/ingest/commands.js'
import type { Principal } from '../../../../../src/front/routes/route.js'

function userOf(namespace: Namespace): Principal {
  const claims = {
    sub: 'usr_ann',
    email: 'ann@example.org',
    app_metadata: {},
    user_metadata: {},
    iat: 0,
    exp: 1,
    jti: 'j',
    iss: 'i',
    sid: 's',
    amr: [],
  }
  return {
    id: `user:${namespace.id}:usr_ann`,
    scopes: new Set(),
    agents: [],
    user: { namespace, claims, access: { claims } },
  }
}

const agents = ['notes', 'acme::notes', 'acme2::notes', 'acme']

/** The agents whose lines are sent to a shard; then the refused ones, with their error codes. */
function addressed(principal: Principal): string[] {
  const bytes = Buffer.from(agents.map((agent) => `${JSON.stringify({ agent, data: {} })}\n`).join(''))
  const stream = { principal, shards: { shardOf: () => 0 } as unknown as Shards }
  const { byShard, faults } = addressLines({ bytes, firstLine: 1 }, stream)
  const numbers = byShard.get(0)?.numbers ?? []
  const refused = faults.map(({ line, refusal }) => `${agents[line - 1]} ${refusal.code}`)
  return [...numbers.map((line) => agents[line - 1] ?? ''), ...refused]
}

describe('lines that name their agents', () => {
  it('reach no organism if a user of the root namespace sends them', () => {
    expect(addressed(userOf({ id: '', agent: 'default' }))).toEqual([
      'notes',
      'acme',
      'acme::notes forbidden',
      'acme2::notes forbidden',
    ])
  })

  it('reach only agents of an organism if its user sends them', () => {
    expect(addressed(userOf({ id: 'acme', agent: 'acme::auth' }))).toEqual([
      'acme::notes',
      'notes forbidden',
      'acme2::notes forbidden',
      'acme forbidden',
    ])
  })

  it('reach only the agents of a limited key', () => {
    const principal: Principal = { id: 'key', scopes: new Set(['ingest']), agents: ['acme*'] }
    expect(addressed(principal)).toEqual(['acme::notes', 'acme2::notes', 'acme', 'notes forbidden'])
    expect(addressed({ ...principal, agents: [] })).toEqual(agents)
  })
})
