/**
 * Sends batches of log records in a separate process, over several connections in parallel: by OTLP in
 * protobuf, or the same records as NDJSON. Each connection takes the next agent until none is left. One batch
 * is encoded for each agent before the clock starts, and sent again and again.
 */
import { Agent, request } from 'node:http'
import { fromJson, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { schemas } from '../../dist/src/otlp/messages.js'

process.once('message', async ({ url, agents, batches, size, connections, headers, format }) => {
  const keepAlive = new Agent({ keepAlive: true, maxSockets: connections })
  const encoded = new Map(agents.map((agent) => [agent, encoders[format](agent, size)]))
  const target = format === 'protobuf' ? '/v1/logs?signing=group' : '/v1/ingest?signing=group'
  const contentType = format === 'protobuf' ? 'application/x-protobuf' : 'application/x-ndjson'
  const sending = { headers: { ...headers, 'content-type': contentType }, keepAlive }
  const left = Array.from({ length: batches }, () => agents).flat()
  const startMs = performance.now()
  const lane = async () => {
    for (let agent = left.shift(); agent !== undefined; agent = left.shift())
      await send(url + target, { ...sending, body: encoded.get(agent) })
  }
  await Promise.all(Array.from({ length: connections }, lane))
  const elapsedMs = performance.now() - startMs
  keepAlive.destroy()
  process.send({ elapsedMs }, () => process.disconnect())
})

const text = (key, value) => ({ key, value: { stringValue: value } })

const resourceOf = (agent) => ({
  attributes: [
    text('service.name', agent),
    text('telemetry.sdk.language', 'nodejs'),
    text('telemetry.sdk.name', 'opentelemetry'),
    text('telemetry.sdk.version', '2.12.1'),
  ],
})

const scope = { name: 'orders', version: '1.0' }

/** A log record of about 300 bytes in protobuf. The ids are hex in OTLP JSON, and base64 for the library. */
const logRecord = (number, idText) => ({
  timeUnixNano: String(1_785_603_000_000_000_000n + BigInt(number)),
  observedTimeUnixNano: String(1_785_603_000_000_000_000n + BigInt(number)),
  severityNumber: 9,
  severityText: 'INFO',
  body: {
    stringValue: `request ${number} took 12 ms and returned 200 for the customer 4711 of the north hall`,
  },
  attributes: [
    text('http.request.method', 'GET'),
    { key: 'http.response.status_code', value: { intValue: '200' } },
    text('url.path', '/api/v1/orders/recent'),
    { key: 'http.server.request.duration', value: { doubleValue: 12.5 } },
    text('user.id', 'u-4711'),
  ],
  flags: 1,
  traceId: idText('5b8efff798038103d269b633813fc60c'),
  spanId: idText('eee19b7ec3c1b174'),
})

const numbers = (size) => Array.from({ length: size }, (_, number) => number)
/** The tag of a field of bytes. */
const tag = (field) => (field << 3) | 2
const message = (schema, value) => toBinary(schema, fromJson(schema, value))

const encoders = {
  ndjson(agent, size) {
    const around = { resource: resourceOf(agent), scope }
    const lines = numbers(size).map((number) => {
      const data = { ...logRecord(number, (hex) => hex), ...around }
      return `${JSON.stringify({ agent, type: 'otel/log', data })}\n`
    })
    return Buffer.from(lines.join(''))
  },
  protobuf(agent, size) {
    const ofScope = new BinaryWriter().uint32(tag(1)).bytes(message(schemas.scope, scope))
    const base64 = (hex) => Buffer.from(hex, 'hex').toString('base64')
    for (const number of numbers(size))
      ofScope.uint32(tag(2)).bytes(message(schemas.logs, logRecord(number, base64)))
    const ofResource = new BinaryWriter()
      .uint32(tag(1))
      .bytes(message(schemas.resource, resourceOf(agent)))
      .uint32(tag(2))
      .bytes(ofScope.finish())
    return Buffer.from(new BinaryWriter().uint32(tag(1)).bytes(ofResource.finish()).finish())
  },
}

function send(url, { body, headers, keepAlive }) {
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      agent: keepAlive,
      headers: { ...headers, 'content-length': body.length },
    })
    sent.on('error', reject)
    sent.on('response', async (response) => {
      let text = ''
      for await (const piece of response.setEncoding('utf8')) text += piece
      if (response.statusCode === 200) resolve()
      else reject(new Error(`Expected 200, got ${response.statusCode}: ${text}`))
    })
    sent.end(body)
  })
}
