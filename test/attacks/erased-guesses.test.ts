import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall, headOf, newAgent } from '../support/http/answers.js'
import { otlpJson } from '../support/http/otlp.js'
import { startServer, type TestAnswer, type TestServer } from '../support/server/server.js'

/*
 * Regression: for a day after a record was erased, a caller could confirm a guess of its body: the server
 * remembered what was written once, and answered the same body in another way than any other body.
 */

let server: TestServer

beforeAll(async () => {
  server = await startServer()
})

afterAll(() => server.stop())

const json = { 'content-type': 'application/json' }
const ndjson = { 'content-type': 'application/x-ndjson' }
const key = { 'idempotency-key': 'once' }
const event = (guess: string) => ({
  specversion: '1.0',
  id: '1',
  source: 'a',
  type: 'b',
  data: { guess },
})

const span = { traceId: '1'.repeat(32), spanId: '2'.repeat(16) }

interface Sent {
  path: string
  raw: string
  headers: Record<string, string>
}

/** Every way in which the server remembers what it has written, by a request whose content is the guess. */
const memories: [name: string, request: (agent: string, guess: string) => Sent][] = [
  [
    'dedupe=body of one record',
    (agent, guess) => ({ path: `/v1/ingest/${agent}?dedupe=body`, raw: `{"a":"${guess}"}`, headers: json }),
  ],
  [
    'dedupe=body of lines',
    (agent, guess) => ({
      path: `/v1/ingest/${agent}?dedupe=body`,
      raw: `{"a":"${guess}"}\n`,
      headers: ndjson,
    }),
  ],
  [
    'dedupe=body of lines of many agents',
    (agent, guess) => ({
      path: '/v1/ingest?dedupe=body',
      raw: `{"agent":"${agent}","data":{"a":"${guess}"}}\n`,
      headers: ndjson,
    }),
  ],
  [
    'dedupe=body of a refused line that is kept',
    (agent, guess) => ({
      path: `/v1/ingest/${agent}?dedupe=body&on_error=keep`,
      raw: `{"a":"${guess}"\n`,
      headers: ndjson,
    }),
  ],
  [
    'a structured CloudEvent',
    (agent, guess) => ({
      path: `/v1/ingest/${agent}`,
      raw: JSON.stringify(event(guess)),
      headers: { 'content-type': 'application/cloudevents+json' },
    }),
  ],
  [
    'CloudEvents in a batch',
    (agent, guess) => ({
      path: `/v1/ingest/${agent}`,
      raw: JSON.stringify([event(guess)]),
      headers: { 'content-type': 'application/cloudevents-batch+json' },
    }),
  ],
  [
    'a CloudEvent in binary mode',
    (agent, guess) => ({
      path: `/v1/ingest/${agent}`,
      raw: `{"a":"${guess}"}`,
      headers: { ...json, 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': 'a', 'ce-type': 'b' },
    }),
  ],
  [
    'spans',
    (agent, guess) => ({
      path: `/v1/otlp/${agent}/v1/traces`,
      raw: JSON.stringify(otlpJson('traces', [{ records: [{ ...span, name: guess }] }])),
      headers: json,
    }),
  ],
  [
    'the Idempotency-Key of a record',
    (agent, guess) => ({
      path: `/v1/collections/${agent}/records`,
      raw: `{"data":{"a":"${guess}"}}`,
      headers: { ...json, ...key },
    }),
  ],
  [
    'the Idempotency-Key of a batch',
    (agent, guess) => ({
      path: `/v1/collections/${agent}/records/batch`,
      raw: `{"records":[{"data":{"a":1}},{"data":{"a":"${guess}"}}]}`,
      headers: { ...json, ...key },
    }),
  ],
  [
    'the Idempotency-Key of an ingested record',
    (agent, guess) => ({
      path: `/v1/ingest/${agent}`,
      raw: `{"a":"${guess}"}`,
      headers: { ...json, ...key },
    }),
  ],
  [
    'the Idempotency-Key of ingested lines',
    (agent, guess) => ({
      path: `/v1/ingest/${agent}`,
      raw: `{"a":1}\n{"a":"${guess}"}\n`,
      headers: { ...ndjson, ...key },
    }),
  ],
  [
    'the Idempotency-Key of lines of many agents, all or none',
    (agent, guess) => ({
      path: '/v1/ingest?on_error=reject_all',
      raw: `{"agent":"${agent}","data":{"a":"${guess}"}}\n`,
      headers: { ...ndjson, ...key },
    }),
  ],
]

let agents = 0

/** A new agent on which records are erased immediately. */
const freeAgent = () => newAgent(server, `guessed-${++agents}`)

const send = ({ path, raw, headers }: Sent): Promise<TestAnswer> =>
  checkedCall(server, `POST ${path}`, { raw, headers })

/** An answer without what differs between agents and times. */
async function answerTo(agent: string, sent: Sent) {
  const { status, text, headers } = await send(sent)
  const replayed = headers.get('idempotency-replayed')
  const same = text
    .replaceAll(agent, 'AGENT')
    .replaceAll(/"(timestamp_hlc|request_id|signature|instance)":"[^"]*"/g, '')
    .replaceAll(/"timestamp_ms":\d+/g, '')
    .replaceAll(/[0-9a-f]{64}/g, 'HASH')
  return { status, replayed, text: same }
}

describe.each(memories)('%s', (_name, request) => {
  it('confirms no guess of a body that was erased', async () => {
    const answers = []
    const grown = []
    for (const guess of ['secret', 'other']) {
      const agent = await freeAgent()
      await send(request(agent, 'secret'))
      const { chain_head: hash } = (await headOf(server, agent)) ?? {}
      const erased = await checkedCall(server, `POST /v1/agents/${agent}/records/${hash}/erase`)
      expect([erased.status, erased.body.state]).toEqual([200, 'erased'])
      const before = await headOf(server, agent)
      answers.push(await answerTo(agent, request(agent, guess)))
      grown.push(((await headOf(server, agent))?.seq ?? 0) - (before?.seq ?? 0))
    }
    expect(answers[0]).toEqual(answers[1])
    expect(grown[0]).toBe(grown[1])
  })

  it('recognises a body that was not erased', async () => {
    const agent = await freeAgent()
    await send(request(agent, 'secret'))
    const written = await headOf(server, agent)
    const same = await answerTo(agent, request(agent, 'secret'))
    expect(await headOf(server, agent)).toEqual(written)
    const other = await answerTo(agent, request(agent, 'other'))
    expect([same, await headOf(server, agent)]).not.toEqual([other, written])
  })
})
