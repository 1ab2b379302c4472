import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { ClusterClient } from './cluster-client.js'

/** An address that forwards to the serving node. */
export interface Router {
  url: string
  stop(): void
}

/** Time limit for a node, milliseconds: longer than an export takes. */
const TIMEOUT_MS = 10_000

/**
 * Forwards reads, and writes with an Idempotency-Key, to the serving node, and retries when that node ends:
 * for checks that know a single address.
 */
export async function startRouter(client: ClusterClient): Promise<Router> {
  const forward = async (request: IncomingMessage, response: ServerResponse) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece)
    const headers = Object.fromEntries(
      ['content-type', 'idempotency-key', 'if-match'].flatMap((name) => {
        const value = request.headers[name]
        return typeof value === 'string' ? [[name, value]] : []
      }),
    )
    const { method = 'GET', url: path = '/' } = request
    const body = pieces.length === 0 ? {} : { body: Buffer.concat(pieces).toString() }
    const { status, replayed, text } = await client.insist({ method, path, headers, ...body }, TIMEOUT_MS)
    response.writeHead(status, { 'idempotency-replayed': `${replayed}` }).end(text)
  }
  const server = createServer((request, response) => {
    // The rounds have ended before the answer; the check that waits for it fails.
    forward(request, response).catch((error: Error) => response.destroy(error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}
