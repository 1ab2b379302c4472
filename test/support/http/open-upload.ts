import { once } from 'node:events'
import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { checkedCall } from './answers.js'
import { metricsNow } from './metrics.js'
import { eventually } from '../eventually.js'
import type { TestServer } from '../server/server.js'

/** A request whose body is sent in parts. */
export interface OpenUpload {
  send(text: string | Uint8Array): void
  /** The answer, which may arrive before the body is complete. */
  // Tests inspect answers of every shape.
  // oxlint-disable-next-line no-explicit-any
  answered: Promise<{ status: number | undefined; body: any }>
  sent: ClientRequest
}

/** Options of an upload. */
export interface UploadCall {
  key: string
  contentType?: string
}

/** Opens an upload; `send` sends parts of its body. */
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

/** Resolves when `count` requests are in flight, in addition to the one for the metrics. */
export async function untilRequestsInFlight(on: TestServer, count: number): Promise<void> {
  const inFlight = /^strandfast_http_requests_in_flight (\d+)$/m
  await eventually(
    async () => Number(inFlight.exec(await metricsNow(() => checkedCall(on, 'GET /metrics')))?.[1]) > count,
  )
}
