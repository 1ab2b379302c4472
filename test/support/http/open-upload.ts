import { once } from 'node:events'
import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { ask } from './answers.js'
import { metricsNow } from './metrics.js'
import { eventually } from '../eventually.js'
import type { TestServer } from '../server/server.js'

/** A request whose body is sent by and by. */
export interface OpenUpload {
  send(text: string | Uint8Array): void
  /** The answer, which may come before the body is whole. */
  // Tests look into answers of every shape.
  // oxlint-disable-next-line no-explicit-any
  answered: Promise<{ status: number | undefined; body: any }>
  sent: ClientRequest
}

/** What an upload is opened with. */
export interface UploadCall {
  key: string
  contentType?: string
}

/** Opens an upload; its body goes out as `send` is called. */
export function openUpload(
  on: TestServer,
  path: string,
  { key, contentType = 'application/x-ndjson' }: UploadCall,
): OpenUpload {
  const headers = { authorization: `Bearer ${key}`, 'content-type': contentType }
  const sent = request(on.url + path, { method: 'POST', headers })
  const answer = async () => {
    const [response]: IncomingMessage[] = await once(sent, 'response')
    let text = ''
    for await (const part of response ?? []) text += String(part)
    sent.destroy()
    return { status: response?.statusCode, body: JSON.parse(text) as unknown }
  }
  const answered = answer()
  sent.on('error', () => {})
  return { sent, answered, send: (text) => void sent.write(text) }
}

/** Resolves when so many requests are under way, beside the one that asks. */
export async function underWay(on: TestServer, count: number): Promise<void> {
  const inFlight = /^strandfast_http_requests_in_flight (\d+)$/m
  await eventually(
    async () => Number(inFlight.exec(await metricsNow(() => ask(on, 'GET /metrics')))?.[1]) > count,
  )
}
