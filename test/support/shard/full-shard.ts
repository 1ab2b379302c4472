import { type TestShard, appendNumber, keyed, replyOf, signed } from './shard.js'

/**
 * Fills a shard with every kind of record that a strand can contain.
 * @returns hashes of records of `notes`
 */
export function fillShard(shard: TestShard): { deleted: string; erased: string } {
  const principal = 'ann'
  const make = (agent: string, zone: 'free' | 'governed') =>
    replyOf(shard.ask({ kind: 'agentCreate', agent, zone, options: {} }))
  const write = (agent: string, n: number): string => replyOf(shard.ask(appendNumber(agent, n))).record_id
  make('notes', 'free')
  make('feed', 'free')
  make('watched', 'governed')
  // An auth shard has it already.
  shard.ask({ kind: 'agentCreate', agent: 'default', zone: 'governed', options: {} })
  const [deleted = '', restored = '', erased = ''] = [1, 2, 3].map((n) => write('notes', n))
  const mutate = (action: 'delete' | 'restore' | 'erase', hash: string, agent = 'notes') =>
    shard.ask({ kind: 'recordMutate', agent, action, hash, principal, options: {} })
  for (const hash of [deleted, restored]) mutate('delete', hash)
  mutate('restore', restored)
  mutate('erase', erased)
  shard.run(...Array.from({ length: 40 }, (_none, n) => appendNumber('feed', n, signed('group'))))
  for (const weight of [1, 2.5]) {
    shard.ask({ kind: 'edgeAdd', agent: 'notes', dst: 'feed', edgeType: 'feeds', weight, options: {} })
  }
  shard.ask({ kind: 'edgeAdd', agent: 'notes', dst: 'watched', edgeType: 'feeds', weight: 1, options: {} })
  shard.ask({ kind: 'edgeRemove', agent: 'notes', dst: 'watched', edgeType: 'feeds', principal, options: {} })
  const policies = [{ actions: ['read' as const], conditions: [{ field: 'n', op: 'eq' as const, value: 1 }] }]
  shard.ask({ kind: 'policiesSet', agent: 'feed', policies, principal, options: {} })
  for (const zone of ['protected', 'free'] as const) {
    shard.ask({ kind: 'agentZoneSet', agent: 'feed', zone, principal, options: {} })
  }
  shard.ask({ kind: 'agentKeyRotate', agent: 'notes', principal, options: {} })
  write('notes', 4)
  const [first = '', second = ''] = [1, 2].map((n) => write('watched', n))
  for (const hash of [first, second]) mutate('delete', hash, 'watched')
  // One proposal is applied automatically, another stays open.
  shard.nowMs += 60_000
  shard.ask({ kind: 'proposalsSweep', options: {} })
  mutate('restore', first, 'watched')
  shard.ask(appendNumber('notes', 5, keyed('a key')))
  register(shard)
  return { deleted, erased }
}

function register(shard: TestShard): void {
  const origin = { ip: '127.0.0.1', userAgent: 'test', requestId: 'r' }
  const change = { kind: 'register', email: 'ada@example.com', passwordHash: 'x' } as const
  shard.ask({ kind: 'authChange', agent: 'default', namespace: '', change, origin, options: {} })
}
