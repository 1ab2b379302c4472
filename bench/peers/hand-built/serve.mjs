import { once } from 'node:events'
import { createServer } from 'node:http'
import { App, us_socket_local_port as localPort } from 'uWebSockets.js'

/**
 * Answers a request.
 * @typedef {(request: {path: string, text: string}) => Promise<{status: number, body: object}>} Handler
 */

/**
 * Serves on a free port of loopback by uWebSockets.js.
 * @param {Handler} handle
 * @returns {number} the port
 */
export function serveByUws(handle) {
  let port
  App()
    .any('/*', (response, request) => {
      const path = request.getUrl()
      const parts = []
      let isAborted = false
      response.onAborted(() => (isAborted = true))
      response.onData(async (part, isLast) => {
        // The memory of `part` is only valid until this returns.
        parts.push(Buffer.from(Buffer.from(part)))
        if (!isLast) return
        const { status, body } = await handle({ path, text: Buffer.concat(parts).toString() })
        if (isAborted) return
        response.cork(() =>
          response
            .writeStatus(String(status))
            .writeHeader('content-type', 'application/json')
            .end(JSON.stringify(body)),
        )
      })
    })
    .listen('127.0.0.1', 0, (socket) => (port = localPort(socket)))
  return port
}

/**
 * Serves on a free port of loopback by node:http.
 * @param {Handler} handle
 * @returns {Promise<number>} the port
 */
export async function serveByNode(handle) {
  const server = createServer((request, response) => {
    const parts = []
    request.on('data', (part) => parts.push(part))
    request.on('end', async () => {
      const { status, body } = await handle({ path: request.url, text: Buffer.concat(parts).toString() })
      const answer = JSON.stringify(body)
      response
        .writeHead(status, {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(answer),
        })
        .end(answer)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address().port
}
