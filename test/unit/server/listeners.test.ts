import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Control, controlPath } from '../../../src/data/backup/control.js'
import { createLogger } from '../../../src/base/log.js'
import { nodeListener } from '../../../src/front/engine/node.js'
import { listenForLinks } from '../../../src/cluster/links/sockets.js'

// The system reports this if it cannot accept a connection, for example without memory: too rare to provoke.
describe('a listener with a failing accept', () => {
  let directory: string
  const servers: Server[] = []

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'strandfast-listener-'))
    const original = Server.prototype.listen
    vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server, ...given: unknown[]) {
      servers.push(this)
      return Reflect.apply(original, this, given)
    })
  })

  afterEach(() => {
    vi.restoreAllMocks()
    servers.length = 0
    rmSync(directory, { recursive: true, force: true })
  })

  /** Makes each listener fail twice, then opens a connection. */
  const fails = async (target: { port: number } | { path: string }) => {
    for (const server of servers)
      for (let nth = 0; nth < 2; nth++) server.emit('error', new Error('accept ENOMEM'))
    const socket = connect({ host: '127.0.0.1', ...target })
    await once(socket, 'connect')
    socket.destroy()
    expect(servers).toHaveLength(1)
  }

  it('keeps accepting links of other nodes', async () => {
    const failed = vi.fn()
    const links = await listenForLinks(
      { host: '127.0.0.1', port: 0, key: Buffer.alloc(32), failed },
      () => {},
    )
    await fails({ port: links.port })
    expect(failed).toHaveBeenCalledTimes(2)
    links.close()
  })

  it('keeps accepting requests by node:http', async () => {
    const door = nodeListener({ tls: undefined, problem: () => '' })
    const port = await door.listen('127.0.0.1', 0, false)
    await fails({ port: port ?? 0 })
    door.close()
  })

  it('keeps accepting commands on this machine', async () => {
    const control = new Control({
      path: directory,
      shards: 1,
      freeBytesMin: 0,
      serving: () => true,
      flush: { all: async () => [], resume() {} },
      nowMs: () => 0,
      log: createLogger('silent', 'test'),
    })
    await control.open()
    await fails({ path: controlPath(directory) })
    await control.close()
  })
})
