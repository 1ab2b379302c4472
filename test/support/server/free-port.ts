import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port that was free a moment ago, for a server that is started on it again and again. A server that picks its port
 * by itself cannot come back to it while its old connections wait out their time.
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
