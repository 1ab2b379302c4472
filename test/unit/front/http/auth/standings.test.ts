import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Command } from '../../../../../src/protocol/messages.js'
import { ApiKeys } from '../../../../../src/front/http/auth/api-keys.js'
import { standingsBy } from '../../../../../src/front/http/auth/standings.js'
import { TestShard } from '../../../../support/shard/shard.js'

let shard: TestShard
beforeEach(() => {
  shard = new TestShard()
})
afterEach(() => shard.remove())

it('finds a key that another node has just created, until it is deleted', async () => {
  const request = { name: 'new', scopes: ['records:delete'], agents: [], maker: 'root', options: {} }
  const made = shard.ask({ kind: 'apiKeyCreate', ...request })
  if (made.kind !== 'apiKeyMade') throw new Error('Expected a key')
  const { keyId } = made.row
  const send = async (command: Command) => shard.ask(command)
  const shards = {
    request: (_agent: string, command: Command) => send(command),
    requestShard: (_shard: number, command: Command) => send(command),
    leaseRefusal: () => undefined,
  }
  // A front that does not know any key yet.
  const standings = standingsBy('default', { clock: Date.now, shards, apiKeys: new ApiKeys(() => {}) })
  expect(await standings([keyId])).toEqual([{ principal: keyId, valid: true }])
  shard.ask({ kind: 'apiKeyDelete', keyId, maker: 'root', options: {} })
  expect(await standings([keyId])).toEqual([{ principal: keyId, valid: false }])
})
