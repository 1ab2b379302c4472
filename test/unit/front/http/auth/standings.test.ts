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

it('is valid for a key that another node has just made, until that is deleted', async () => {
  const making = { name: 'new', scopes: ['records:delete'], agents: [], maker: 'root', options: {} }
  const made = shard.ask({ kind: 'apiKeyCreate', ...making })
  if (made.kind !== 'apiKeyMade') throw new Error('Expected a key')
  const { keyId } = made.row
  const ask = async (command: Command) => shard.ask(command)
  const shards = {
    ask: (_agent: string, command: Command) => ask(command),
    askOne: (_shard: number, command: Command) => ask(command),
    leaseRefusal: () => undefined,
  }
  // A front that has been told of no key yet.
  const standings = standingsBy('default', { shards, apiKeys: new ApiKeys(() => {}) })
  expect(await standings([keyId])).toEqual([{ principal: keyId, valid: true }])
  shard.ask({ kind: 'apiKeyDelete', keyId, maker: 'root', options: {} })
  expect(await standings([keyId])).toEqual([{ principal: keyId, valid: false }])
})
