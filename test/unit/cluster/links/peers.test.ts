import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { createLogger } from '../../../../src/base/log.js'
import { Peers } from '../../../../src/cluster/links/peers.js'

describe('the links of a front to other nodes', () => {
  it('are opened few at a time, and each is tried even if no node answers', async () => {
    const [open, reached] = [new Set<Socket>(), new Set<string>()]
    let most = 0
    // A link has two connections.
    const connectionsMax = 2 * limits.linkTriesMax
    // Accepts connections without answering, until the maximum is open.
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('close', () => open.delete(socket))
      open.add(socket)
      reached.add(socket.localAddress ?? '')
      most = Math.max(most, open.size)
      if (open.size === connectionsMax) setImmediate(() => open.forEach((one) => one.destroy()))
    })
    server.listen(0, '0.0.0.0')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
    const peers = new Peers({
      links: [],
      log: createLogger('silent', 'test'),
    })
    const count = limits.linkTriesMax * 3
    peers.follow({
      own: { node: 'own', incarnation: 1, key: Buffer.alloc(32) },
      peers: Array.from({ length: count }, (_none, nth) => ({
        node: `node-${nth}`,
        incarnation: 1,
        host: `127.0.0.${nth + 1}`,
        port: address.port,
      })),
    })
    while (reached.size < count) await once(server, 'connection')
    expect(most).toBeLessThanOrEqual(connectionsMax)
    peers.close()
    server.close()
    for (const one of open) one.destroy()
  })
})
