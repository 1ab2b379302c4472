/**
 * Uploads NDJSON in a separate process over several connections in parallel; each connection takes the next
 * agent until none is left. The lines are encoded before the clock starts.
 */
import { Agent, request } from 'node:http'
import { recordBody } from '../records.mjs'

const PIECE_BYTES = 65_536

process.once('message', async ({ url, agents, lines, connections, headers, signing }) => {
  const body = Buffer.from(
    Array.from({ length: lines }, (_, number) => `${JSON.stringify(recordBody(number))}\n`).join(''),
  )
  const keepAlive = new Agent({ keepAlive: true, maxSockets: connections })
  const left = [...agents]
  let accepted = 0
  let rejected = 0
  const startMs = performance.now()
  const lane = async () => {
    for (let agent = left.shift(); agent !== undefined; agent = left.shift()) {
      const answer = await upload(`${url}/v1/ingest/${agent}?signing=${signing}`, {
        body,
        headers,
        keepAlive,
      })
      accepted += answer.accepted
      rejected += answer.rejected
    }
  }
  await Promise.all(Array.from({ length: connections }, lane))
  const elapsedMs = performance.now() - startMs
  keepAlive.destroy()
  process.send({ accepted, rejected, elapsedMs, bytes: body.length * agents.length }, () =>
    process.disconnect(),
  )
})

/** Sends the body in pieces, no faster than the server reads it. */
function upload(url, { body, headers, keepAlive }) {
  return new Promise((resolve, reject) => {
    const upload = request(url, {
      method: 'POST',
      agent: keepAlive,
      headers: { ...headers, 'content-type': 'application/x-ndjson', 'content-length': body.length },
    })
    upload.on('error', reject)
    upload.on('response', async (response) => {
      let text = ''
      for await (const piece of response.setEncoding('utf8')) text += piece
      if (response.statusCode === 200) resolve(JSON.parse(text))
      else reject(new Error(`Expected 200 of an ingest, got ${response.statusCode}: ${text}`))
    })
    let at = 0
    const send = () => {
      while (at < body.length) {
        const piece = body.subarray(at, (at += PIECE_BYTES))
        if (!upload.write(piece)) return upload.once('drain', send)
      }
      upload.end()
    }
    send()
  })
}
