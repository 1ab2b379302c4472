import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import type { TestAnswer, TestServer } from '../server/server.js'

/** Sends a JSON body, or none, with any headers, including those that `fetch` sets itself. */
export async function callAs(
  server: TestServer,
  { path, body, headers }: { path: string; body?: unknown; headers: Record<string, string> },
): Promise<Pick<TestAnswer, 'status' | 'body'>> {
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const outgoing = request(new URL(path, server.url), {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...type, ...headers },
    setHost: headers['host'] === undefined,
  })
  outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  const [answer]: IncomingMessage[] = await once(outgoing, 'response')
  if (answer === undefined) throw new Error('Expected an answer')
  return { status: answer.statusCode ?? 0, body: await json(answer) }
}
