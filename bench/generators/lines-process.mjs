/**
 * Uploads NDJSON lines `{agent, data}` in a separate process, in large requests over several connections in
 * parallel. A line is encoded when it is sent, so that millions of them need no memory.
 */
import { Agent, request } from 'node:http'
import { recordBody } from '../records.mjs'

/**
 * An upload of `lines` lines; line n belongs to the agent `PREFIX-<n modulo agents>`.
 * @typedef {{url: string, prefix: string, agents: number, from: number, lines: number, linesARequest: number,
 *   connections: number, headers: object, signing: string}} LinesTask
 */

process.once('message', async (task) => {
  const { from, lines, linesARequest, connections } = task
  const keepAlive = new Agent({ keepAlive: true, maxSockets: connections })
  const counts = { accepted: 0, rejected: 0 }
  let next = from
  const startMs = performance.now()
  const lane = async () => {
    while (next < from + lines) {
      const first = next
      next = Math.min(first + linesARequest, from + lines)
      const { accepted, rejected } = await upload(task, { first, end: next, keepAlive })
      counts.accepted += accepted
      counts.rejected += rejected
    }
  }
  await Promise.all(Array.from({ length: connections }, lane))
  const elapsedMs = performance.now() - startMs
  keepAlive.destroy()
  process.send({ ...counts, elapsedMs }, () => process.disconnect())
})

/** Lines in one write to the socket; the server reads them at its pace. */
const LINES_A_PIECE = 200

function upload({ url, prefix, agents, headers, signing }, { first, end, keepAlive }) {
  return new Promise((resolve, reject) => {
    const upload = request(`${url}/v1/ingest?signing=${signing}`, {
      method: 'POST',
      agent: keepAlive,
      headers: { ...headers, 'content-type': 'application/x-ndjson', 'transfer-encoding': 'chunked' },
    })
    upload.on('error', reject)
    upload.on('response', async (response) => {
      let text = ''
      for await (const piece of response.setEncoding('utf8')) text += piece
      if (response.statusCode === 200) resolve(JSON.parse(text))
      else reject(new Error(`Expected 200 of an ingest, got ${response.statusCode}: ${text}`))
    })
    let at = first
    const send = () => {
      while (at < end) {
        const pieceEnd = Math.min(at + LINES_A_PIECE, end)
        let piece = ''
        for (; at < pieceEnd; at++) {
          const agent = `${prefix}-${String(at % agents).padStart(4, '0')}`
          piece += `${JSON.stringify({ agent, data: recordBody(at) })}\n`
        }
        if (!upload.write(piece)) return upload.once('drain', send)
      }
      upload.end()
    }
    send()
  })
}
