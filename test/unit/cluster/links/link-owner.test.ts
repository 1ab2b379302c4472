import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { RefusedError } from '../../../../src/base/errors.js'
import { build, version } from '../../../../src/base/version.js'
import { limits } from '../../../../src/base/limits/limits.js'
import { LinkOwner, type LinkOwnerParts } from '../../../../src/cluster/links/link-owner.js'
import { PeerLink } from '../../../../src/cluster/links/peer-link.js'
import { Link } from '../../../../src/cluster/links/link.js'
import { connectLink, listenForLinks } from '../../../../src/cluster/links/sockets.js'
import { mainCalls, type MainCallParts } from '../../../../src/server/calls/main-calls.js'
import { startTcpProxy } from '../../../support/cluster/tcp-proxy.js'
import { eventually } from '../../../support/eventually.js'

// Neither end closes a link that is held.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval'] }))
afterEach(() => void vi.useRealTimers())

const PAGE_BYTES = 1_048_576
const keyIds = Array.from({ length: limits.pageRowsMax }, (_none, nth) => `key-${nth}`)

/**
 * A node that answers calls, as another node reaches it.
 * @param isMember whether its database shows the node `third`
 */
async function startOwner({ isMember = true }: { isMember?: boolean | Error } = {}) {
  const key = randomBytes(32)
  const own = { node: 'owner', incarnation: 1 }
  const counts = { reads: 0 }
  const served = {
    parts: {
      readers: {
        run() {
          counts.reads += 1
          return { bytes: Buffer.alloc(PAGE_BYTES) }
        },
      },
    },
    services: { lastUses: (ids: readonly string[]) => ids.map(() => Date.now()) },
  } as unknown as MainCallParts
  const calls: LinkOwnerParts['calls'] = (front, ended) => mainCalls(served, front, ended)
  const parts = {
    calls,
    threads: { shards: { count: 0 }, leave() {} },
    own,
    async isMember({ node }: { node: string }) {
      if (node !== 'third') return true
      if (isMember instanceof Error) throw isMember
      return isMember
    },
    lease: { holds: () => true },
    log: { info() {}, warn() {} },
  } as unknown as LinkOwnerParts
  const owner = new LinkOwner(parts)
  const server = await listenForLinks({ host: '127.0.0.1', port: 0, key, failed() {} }, (sockets) =>
    owner.take(sockets),
  )
  const proxy = await startTcpProxy(server.port)
  const ended: string[] = []
  let isUp = false
  const peer = await PeerLink.connect(
    { ...own, host: '127.0.0.1', port: proxy.port },
    { own: { node: 'other', incarnation: 1, key }, links: [] },
    {
      up: () => void (isUp = true),
      stops() {},
      elsewhere() {},
      ended: (reason) => void ended.push(reason),
    },
  )
  await eventually(() => isUp)
  const close = async () => {
    peer.close('the test is over')
    owner.close()
    server.close()
    await proxy.stop()
  }
  return { peer, proxy, counts, ended, close, key, port: server.port }
}

it('refuses further large replies to a caller that fills a link, and sends those to others and to nodes', async () => {
  const { peer, proxy, counts, ended, close } = await startOwner()
  const settled: string[] = []
  const read = async (caller: string): Promise<string> => {
    const task = { shard: 0, agentNo: 0, size: 1 }
    const status = await peer.call('read', { name: 'treeRoot', task, caller }).then(
      () => 'read',
      (error: unknown) => (error instanceof RefusedError ? error.refusal.code : String(error)),
    )
    settled.push(`${caller}: ${status}`)
    return status
  }
  try {
    proxy.hold('answers')
    const pages = limits.linkAnswerBytesPerPrincipalMax / PAGE_BYTES
    const greedy = Array.from({ length: pages + 8 }, () => read('greedy'))
    const other = read('other')
    await eventually(() => counts.reads === pages + 9)
    const uses = peer.call('lastUses', keyIds)
    proxy.heal()
    expect(await uses).toHaveLength(keyIds.length)
    expect(await other).toBe('read')
    const statuses = await Promise.all(greedy)
    expect(statuses.filter((status) => status === 'overloaded').length).toBeGreaterThan(6)
    expect(statuses.filter((status) => status === 'read').length).toBeGreaterThan(pages - 2)
    expect(new Set(statuses)).toEqual(new Set(['read', 'overloaded']))
    // The other caller did not wait for all replies to the greedy one.
    expect(settled.indexOf('other: read')).toBeLessThan(settled.lastIndexOf('greedy: read') - pages / 2)
    expect(await read('greedy')).toBe('read')
    expect(ended).toEqual([])
  } finally {
    await close()
  }
})

/** What a node answers to the first message of another one. */
async function answerTo(
  { key, port }: { key: Buffer; port: number },
  hello: { version: string; to: { node: string; incarnation: number } },
): Promise<unknown> {
  const sockets = await connectLink({ host: '127.0.0.1', port, key })
  return new Promise((resolve) => {
    const link = new Link(sockets, { message: resolve, closed: resolve })
    link.sendUrgent({ kind: 'hello', from: { node: 'third', incarnation: 1 }, ...hello })
  })
}

it('refuses another build, also one with the same version', async () => {
  const owner = await startOwner()
  try {
    const answer = await answerTo(owner, { version, to: { node: 'owner', incarnation: 1 } })
    const reason = `This node runs version ${build}, the peer ${version}`
    expect(answer).toMatchObject({ kind: 'value', value: { kind: 'refused', reason } })
  } finally {
    await owner.close()
  }
})

it.each([
  { when: 'its database does not show that node', isMember: false, to: 'owner 1', isElsewhere: true },
  { when: 'that node expects an earlier start of it', isMember: true, to: 'owner 0', isElsewhere: true },
  { when: 'that node expects another one', isMember: true, to: 'fourth 1', isElsewhere: false },
  {
    when: 'its database does not answer',
    isMember: new Error('away'),
    to: 'owner 1',
    isElsewhere: false,
  },
])('says whether another node uses a copy of the database: $when', async ({ isMember, to, isElsewhere }) => {
  const owner = await startOwner({ isMember })
  const [node = '', incarnation] = to.split(' ')
  try {
    const hello = { version: build, to: { node, incarnation: Number(incarnation) } }
    expect(await answerTo(owner, hello)).toMatchObject({ value: { kind: 'refused', isElsewhere } })
  } finally {
    await owner.close()
  }
})
