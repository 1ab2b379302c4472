import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Returns a free port for a server that is restarted on it. A server that picks its own port cannot reuse it
 * while old connections are in TIME_WAIT.
 */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  return address.port
}
