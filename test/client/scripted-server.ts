import { once } from 'node:events'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import { text } from 'node:stream/consumers'

/** A received request with its body. */
export interface Received {
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: string
}

/** Answers one request. Destroying the socket interrupts the response. */
export type Answer = (request: Received, response: ServerResponse) => void | Promise<void>

/** A real HTTP server on loopback with scripted answers, to simulate a network and a failing server. */
export interface ScriptedServer {
  url: string
  received: Received[]
  stop: () => Promise<void>
}

/** Starts a server. The n-th request gets the n-th answer; later requests get the last one. */
export async function startScriptedServer(...answers: Answer[]): Promise<ScriptedServer> {
  const received: Received[] = []
  const server = createServer(async (incoming, response) => {
    const { method = '', url = '', headers } = incoming
    const index = received.length
    const request: Received = { method, url, headers, body: '' }
    received.push(request)
    request.body = await text(incoming)
    await answers[Math.min(index, answers.length - 1)]?.(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  const stop = async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${address.port}`, received, stop }
}

/** Answers JSON. */
export function answerJson(value: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
  }
}

/** Answers a problem document as the service does. */
export function answerProblem(status: number, code: string, headers: Record<string, string> = {}): Answer {
  return (_request, response) => {
    const problem = {
      status,
      code,
      detail: `Detail of ${code}`,
      message: `Detail of ${code}`,
      request_id: 'req-1',
    }
    response.writeHead(status, { 'content-type': 'application/problem+json', ...headers })
    response.end(JSON.stringify(problem))
  }
}

/** Closes the connection without a response. */
export const cutOff: Answer = (_request, response) => {
  response.socket?.destroy()
}
