import { once } from 'node:events'
import { createServer, type IncomingMessage, request as sendRequest } from 'node:http'

/** A proxy that changes answers of the server. */
export interface ChangingProxy {
  url: string
  stop(): void
}

/**
 * Changes the body of an answer.
 * @param path of the request, with its query
 * @returns the bytes to send instead; undefined to leave it unchanged
 */
export type Change = (path: string, body: Buffer) => Buffer | string | undefined

/**
 * Starts a proxy in front of a server. Only answers to paths for which `concerns` returns true are changed.
 */
export async function startChangingProxy(
  target: string,
  { concerns, change }: { concerns: (path: string) => boolean; change: Change },
): Promise<ChangingProxy> {
  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    const to = new URL(path, target)
    const isChanged = concerns(path)
    const headers = { ...request.headers, host: to.host }
    // The body has to be uncompressed to be changed.
    if (isChanged) delete headers['accept-encoding']
    const onward = sendRequest(to, { method: request.method, headers }, async (answer) => {
      if (!isChanged) {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        return answer.pipe(response)
      }
      const body = await wholeBody(answer)
      if (body === undefined) return response.destroy()
      const { 'content-length': _length, 'transfer-encoding': _coding, ...others } = answer.headers
      response.writeHead(answer.statusCode ?? 502, others).end(change(path, body) ?? body)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** The body of an answer; undefined if the client has disconnected. */
async function wholeBody(answer: IncomingMessage): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  try {
    for await (const piece of answer) pieces.push(piece)
    return Buffer.concat(pieces)
  } catch {
    return undefined
  }
}
