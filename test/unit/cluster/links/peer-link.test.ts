import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { Link } from '../../../../src/cluster/links/link.js'
import { listenForLinks } from '../../../../src/cluster/links/sockets.js'
import { isToOwner } from '../../../../src/protocol/link-messages.js'
import { PeerLink } from '../../../../src/cluster/links/peer-link.js'
import { eventually } from '../../../support/eventually.js'

it('lets a front answer for as long as the owner permits, and not while the owner has no lease', async () => {
  const key = randomBytes(32)
  let forMs = 0
  let owner: Link | undefined
  /** Whether the front could answer at each ping. */
  const found: boolean[] = []
  const listening = { host: '127.0.0.1', port: 0, key, failed() {} }
  const server = await listenForLinks(listening, (socket) => {
    owner = new Link(socket, {
      message(received) {
        if (received.kind !== 'value' || !isToOwner(received.value)) return
        const message = received.value
        if (message.kind === 'hello') owner?.send({ kind: 'welcome', front: 1 })
        if (message.kind !== 'ping') return
        found.push(peer.isUp)
        owner?.send({ kind: 'pong', atMs: message.atMs, forMs, readOnly: false })
      },
      closed() {},
    })
  })
  const address = { node: 'owner', incarnation: 1, host: '127.0.0.1', port: server.port }
  const own = { node: 'other', incarnation: 1, key }
  const peer = await PeerLink.connect(
    address,
    { own, links: [] },
    { up() {}, stops() {}, elsewhere() {}, ended() {} },
  )
  try {
    await eventually(() => found.length === 4)
    expect(found).toEqual([false, false, false, false])
    forMs = 60_000
    await eventually(() => peer.isUp)
  } finally {
    peer.end()
    owner?.close('the test is over')
    server.close()
  }
})

it('ends a link over which a message arrives that it does not know', async () => {
  const key = randomBytes(32)
  const listening = { host: '127.0.0.1', port: 0, key, failed() {} }
  const server = await listenForLinks(listening, (socket) => {
    const owner = new Link(socket, { message() {}, closed() {} })
    owner.send({ kind: 'allTaken', shard: 0, term: 1, noticeNo: 1 })
  })
  const address = { node: 'owner', incarnation: 1, host: '127.0.0.1', port: server.port }
  const own = { node: 'other', incarnation: 1, key }
  try {
    const reason = await new Promise<string>((ended) => {
      void PeerLink.connect(address, { own, links: [] }, { up() {}, stops() {}, elsewhere() {}, ended })
    })
    expect(reason).toBe('the peer sent an unknown message')
  } finally {
    server.close()
  }
})
