import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type IngestSummary,
  NotFoundError,
  ServiceClient,
  type StreamEvent,
  type Subscription,
  type WhereCondition,
  type Zone,
} from '../../src/client/index.js'
import { startServer } from '../support/server/server.js'
import { keyPair } from './signed-strand.js'

interface Reading {
  sensor: string
  celsius: number
}

let server: Awaited<ReturnType<typeof startServer>>
let client: ServiceClient

beforeAll(async () => {
  server = await startServer({ env: {} })
  client = new ServiceClient({ url: server.url, apiKey: server.rootKey })
})

afterAll(async () => {
  await server.stop()
})

/** Resolves when `count` events have arrived. */
function eventsOf(count: number, subscribe: (onEvent: (event: StreamEvent) => void) => Subscription) {
  return new Promise<StreamEvent[]>((resolve) => {
    const events: StreamEvent[] = []
    const subscription = subscribe((event) => {
      events.push(event)
      if (events.length < count) return
      subscription.close()
      resolve(events)
    })
  })
}

async function seqsOf(rows: AsyncIterable<{ seq: number }>): Promise<number[]> {
  const seqs: number[] = []
  for await (const row of rows) seqs.push(row.seq)
  return seqs
}

describe('information about the server and the caller', () => {
  it('is returned to an administrator', async () => {
    const { kind, scopes } = await client.whoAmI()
    expect([kind, scopes]).toEqual(['root', ['admin:*']])
    const { version, shards, settings } = await client.server()
    expect(version).toMatch(/^\d+\.\d+\.\d+/)
    expect(shards.length).toBeGreaterThan(0)
    const { metrics } = await client.metrics({ names: ['strandfast_agents', 'strandfast_no_such'] })
    expect(metrics.map(({ name, samples }) => [name, samples.length])).toEqual([
      ['strandfast_agents', shards.length],
    ])
    expect(settings.find(({ name }) => name === 'SERVICE_ROOT_API_KEY')).toMatchObject({ value: null })
  })

  it('includes pages of agents with their status', async () => {
    await client.createAgent('table-a', undefined, 'free')
    await client.createAgent('table-b', undefined, 'free')
    await client.agent('table-b').write({ n: 1 })
    const {
      agents,
      statuses,
      next_cursor: cursor,
    } = await client.agentStatuses({ prefix: 'table-', limit: 1 })
    expect([agents, statuses.map(({ record_count }) => record_count)]).toEqual([['table-a'], [0]])
    const next = await client.agentStatuses({ prefix: 'table-', limit: 1, cursor: cursor ?? undefined })
    expect(next.statuses).toMatchObject([{ agent_id: 'table-b', record_count: 1 }])
  })

  it('is refused without a credential', async () => {
    const anonymous = new ServiceClient({ url: server.url })
    await expect(anonymous.whoAmI()).rejects.toMatchObject({ status: 401 })
    await expect(anonymous.server()).rejects.toMatchObject({ status: 401 })
  })
})

describe('records, against a running server', () => {
  it('answers ping', async () => {
    expect(await client.ping()).toBe(true)
  })

  it('writes to a new collection, and reads the records', async () => {
    const readings = client.collection<Reading>('readings')
    const first = await readings.write({ sensor: 'a', celsius: 20.5 })
    const second = await readings.write({ sensor: 'b', celsius: 19 }, { type: 'reading' })
    expect(first.hash).toBe(`sha256:${first.id}`)
    expect(second.parent_hash).toBe(first.content_hash)
    const record = await readings.get(first.hash)
    expect(record.data).toEqual({ sensor: 'a', celsius: 20.5 })
    expect(record.data).toBe(record.payload)
    expect((await readings.get(second.id)).type).toBe('reading')
    const { records } = await readings.latest()
    expect(records.map((row) => row.data)).toEqual([
      { sensor: 'b', celsius: 19 },
      { sensor: 'a', celsius: 20.5 },
    ])
    const found = await readings.query({
      type: 'latest',
      where: [{ field: 'celsius', op: 'gt', value: 20 }],
    })
    expect(found.records.map(({ seq }) => seq)).toEqual([1])
    expect(await readings.head()).toMatchObject({ chain_head: second.content_hash, record_count: 2 })
    expect(await readings.status()).toMatchObject({ zone: 'governed', record_count: 2 })
  })

  it('has the time of a record in milliseconds and as a date in every answer', async () => {
    const beganMs = Date.now() - 1_000
    const dated = client.collection('dated')
    const written = await dated.write({ n: 1 })
    const [inBatch] = await dated.writeBatch([{ n: 2 }])
    const [event] = await eventsOf(1, (onEvent) => client.subscribeAgent('dated', onEvent, { since: 0 }))
    const { statuses } = await client.agentStatuses({ prefix: 'dated' })
    const shown = [
      written,
      inBatch,
      event,
      statuses[0],
      await dated.get(written.id),
      await dated.head(),
      await dated.status(),
      await client.ingest('dated', { n: 3 }),
      (await dated.latest()).records[0],
      (await dated.asOf(Date.now())).records[0],
    ]
    for (const one of shown) {
      expect(one?.timestamp_ms).toBe(Number.parseInt(one?.timestamp_hlc.slice(0, 12) ?? '', 16))
      expect(one?.timestamp).toEqual(new Date(one?.timestamp_ms ?? 0))
      expect(one?.timestamp_ms).toBeGreaterThan(beganMs)
    }
    expect(event?.timestamp).toEqual(written.timestamp)
  })

  it('lists the allowed values in an error', async () => {
    // @ts-expect-error No such zone.
    const zone: Zone = 'frozen'
    await expect(client.createAgent('listed', undefined, zone)).rejects.toMatchObject({
      message: 'Expected one of immutable_core, protected, governed, free at /zone',
    })
    // @ts-expect-error No such operator.
    const where: WhereCondition[] = [{ field: 'n', op: 'like', value: 1 }]
    await expect(client.collection('dated').query({ type: 'latest', where })).rejects.toMatchObject({
      message: 'Expected one of eq, ne, in, lt, lte, gt, gte, exists, contains, starts_with at /where/0/op',
    })
  })

  it('distinguishes a missing record from a missing agent', async () => {
    await client.collection('known').write({ n: 1 })
    const missing = client.agent('known').get('ab'.repeat(32))
    await expect(missing).rejects.toBeInstanceOf(NotFoundError)
    await expect(missing).rejects.toMatchObject({ code: 'record_not_found' })
    await expect(client.agent('anonymous').write({ n: 1 })).rejects.toMatchObject({ code: 'agent_not_found' })
  })

  it('refuses a write with ifMatch when the head has changed', async () => {
    const notes = client.collection('guarded')
    const first = await notes.write({ n: 1 })
    const second = await notes.write({ n: 2 }, { ifMatch: first.hash })
    const late = notes.write({ n: 3 }, { ifMatch: first.hash })
    await expect(late).rejects.toMatchObject({ status: 412, code: 'head_mismatch' })
    expect((await notes.head()).chain_head).toBe(second.id)
  })

  it('answers a repeated idempotency key with the first answer', async () => {
    const notes = client.collection('once')
    const first = await notes.write({ n: 1 }, { idempotencyKey: 'k-1' })
    expect(await notes.write({ n: 1 }, { idempotencyKey: 'k-1' })).toEqual(first)
    const reused = notes.write({ n: 2 }, { idempotencyKey: 'k-1' })
    await expect(reused).rejects.toMatchObject({ status: 422, code: 'idempotency_key_reused' })
    expect((await notes.head()).record_count).toBe(1)
  })

  it('writes all of a batch or none or, if not atomic, the valid records', async () => {
    const batch = client.collection('batch')
    const results = await batch.writeBatch([{ n: 1 }, { n: 2 }, { n: 3 }])
    expect(results.map(({ seq }) => seq)).toEqual([1, 2, 3])
    const wide = { text: 'x'.repeat(300_000) }
    await expect(batch.writeBatch([{ n: 4 }, wide])).rejects.toMatchObject({ status: 413 })
    expect((await batch.head()).record_count).toBe(3)
    const [good, bad] = await batch.writeBatch([{ n: 4 }, wide], { atomic: false })
    expect(good).toMatchObject({ seq: 4 })
    expect(bad).toMatchObject({ error: { code: 'too_large' } })
  })

  it('reads all pages of a long query', async () => {
    const long = client.collection('long')
    await long.writeBatch(Array.from({ length: 250 }, (_, n) => ({ n })))
    const rows = long.queryAll({ type: 'time_range', from_ts: 0, limit: 100 })
    const seqs = await seqsOf(rows)
    expect(seqs.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 250 }, (_, n) => n + 1))
    const some = long.queryAll({ type: 'latest', limit: 3, where: [{ field: 'n', op: 'lt', value: 7 }] })
    expect(await seqsOf(some)).toEqual([7, 6, 5, 4, 3, 2, 1])
    expect(await long.query({ type: 'chain_head' })).toMatchObject({
      chain_head: (await long.head()).chain_head,
    })
  })

  it('deletes and restores in a free zone, and not in an immutable one', async () => {
    await client.createAgent('free', undefined, 'free')
    const free = client.agent('free')
    const { id } = await free.write({ n: 1 })
    expect(await free.deleteRecord(id)).toMatchObject({ record_id: id })
    expect((await free.get(id)).deleted).toBe(true)
    expect((await free.latest()).records).toEqual([])
    await expect(free.deleteRecord(id)).rejects.toMatchObject({ code: 'already_deleted' })
    await free.restoreRecord(id)
    expect((await free.latest()).records.map((row) => row.record_id)).toEqual([id])
    await client.createAgent('stone', undefined, 'immutable_core')
    const kept = await client.agent('stone').write({ n: 1 })
    const refused = client.agent('stone').deleteRecord(kept.id)
    await expect(refused).rejects.toMatchObject({ status: 403, code: 'zone_immutable' })
  })
})

describe('a search for a record, against a running server', () => {
  it('finds it among all agents by its hash, or by the first digits', async () => {
    const written = await client.collection('findable').write({ n: 1 })
    for (const hash of [written.hash, written.record_id.slice(0, 8)]) {
      expect(await client.findRecords(hash)).toEqual([
        {
          agent: 'findable',
          record_id: written.record_id,
          seq: written.seq,
          type: 'record',
          timestamp_hlc: written.timestamp_hlc,
          timestamp_ms: written.timestamp_ms,
          timestamp: written.timestamp,
        },
      ])
    }
    await expect(client.findRecords('0'.repeat(64))).rejects.toBeInstanceOf(NotFoundError)
  })
})

describe('agents, against a running server', () => {
  it('are created from a seed, once', async () => {
    const { publicHex } = keyPair(7)
    const made = await client.createAgent('seeded', '07'.repeat(32), 'protected')
    expect(made).toMatchObject({ agent_id: 'seeded', zone: 'protected', public_key: publicHex })
    const again = client.createAgent('seeded', undefined, 'protected')
    await expect(again).rejects.toMatchObject({ status: 409, code: 'agent_exists' })
    const sameKey = client.createAgent('other', '07'.repeat(32), 'free')
    await expect(sameKey).rejects.toMatchObject({ status: 409, code: 'key_in_use' })
  })

  it('are listed, all, by prefix or by a part of their name', async () => {
    for (const name of ['list-a', 'list-b', 'list-c']) await client.createAgent(name, undefined, 'free')
    const listed = await client.listAgents({ prefix: 'list-' })
    expect(listed).toEqual({ agents: ['list-a', 'list-b', 'list-c'], total: 3 })
    expect((await client.listAgents({ prefix: 'list-', limit: 2 })).agents).toEqual(['list-a', 'list-b'])
    expect((await client.listAgents({ contains: 'IST-' })).agents).toEqual(listed.agents)
    expect((await client.agentStatuses({ contains: 'ist-b' })).agents).toEqual(['list-b'])
    expect((await client.listAgents()).agents).toContain('default')
  })

  it('are not listed for an unknown credential', async () => {
    const other = new ServiceClient({ url: server.url, apiKey: 'x'.repeat(40) })
    await expect(other.listAgents()).rejects.toMatchObject({ status: 401 })
    await expect(new ServiceClient({ url: server.url }).listAgents()).rejects.toMatchObject({ status: 401 })
  })
})

describe('ingest, against a running server', () => {
  it('writes one record', async () => {
    await client.createAgent('one', undefined, 'free')
    const { id } = await client.ingest('one', { n: 1 })
    expect((await client.agent('one').get(id)).data).toEqual({ n: 1 })
  })

  it.each(['stream', 'chunks'] as const)(
    'writes many records in order as %s, and reports the refused lines',
    async (upload) => {
      const agent = `many-${upload}`
      await client.createAgent(agent, undefined, 'free')
      async function* source(): AsyncGenerator<object> {
        for (let n = 1; n <= 5_000; n++) yield n === 4_000 ? { text: 'x'.repeat(300_000) } : { n }
      }
      const summary: IngestSummary = await client.ingestMany(agent, source(), { upload })
      expect(summary).toMatchObject({ accepted: 4_999, rejected: 1, first_seq: 1, last_seq: 4_999 })
      expect(summary.errors).toMatchObject([{ line: 4_000, code: 'too_large' }])
      const head = await client.agent(agent).head()
      expect(summary.chain_head).toBe(head.chain_head)
    },
  )

  // Regression: such an upload was reported as successful.
  it.each(['stream', 'chunks'] as const)(
    'throws if every record of an ingest is refused, sent as %s',
    async (upload) => {
      const bad = Array.from({ length: 4 }, () => ({ text: 'x'.repeat(300_000) }))
      const refused = client.ingestMany(`none-${upload}`, bad, { upload })
      await expect(refused).rejects.toMatchObject({ status: 422, code: 'ingest_rejected' })
      const some = await client.ingestMany(`some-${upload}`, [...bad, { n: 1 }], { upload })
      expect(some).toMatchObject({ accepted: 1, rejected: 4, first_seq: 1, last_seq: 1 })
      expect(some.errors.map(({ line }) => line)).toEqual([1, 2, 3, 4])
    },
  )

  it('stores refused records and large integers as text, and skips duplicates, if the options say so', async () => {
    const records = [{ n: 1 }, { text: 'x'.repeat(300_000) }, { n: 2 ** 60 }]
    const options = { onError: 'keep', integers: 'text', dedupe: 'body', upload: 'chunks' } as const
    const first = await client.ingestMany('careful', records, options)
    expect(first).toMatchObject({ accepted: 2, rejected: 1, kept: 1, first_seq: 1, last_seq: 4 })
    const again = await client.ingestMany('careful', records, options)
    expect(again).toMatchObject({ accepted: 2, duplicates: 2, rejected: 1, kept: 1, last_seq: null })
    // A refused line that is too long for one record is stored in two.
    expect((await client.agent('careful').head()).record_count).toBe(4)
  })

  it('writes nothing with reject_all if one line is refused', async () => {
    await client.createAgent('whole', undefined, 'free')
    const lines = [{ n: 1 }, { text: 'x'.repeat(300_000) }]
    const refused = client.ingestMany('whole', lines, { onError: 'reject_all' })
    await expect(refused).rejects.toMatchObject({ status: 422, code: 'ingest_rejected' })
    expect((await client.agent('whole').head()).record_count).toBe(0)
  })
})

describe('subscriptions, against a running server', () => {
  it('replay stored events and continue with live ones', async () => {
    const live = client.collection('live')
    await live.writeBatch([{ n: 1 }, { n: 2 }])
    let caughtUp = 0
    const onCaughtUp = () => {
      caughtUp += 1
      void live.write({ n: 3 })
    }
    const events = await eventsOf(3, (onEvent) =>
      client.subscribeAgent('live', onEvent, { since: 0, onCaughtUp }),
    )
    expect(events.map(({ payload }) => payload)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    expect(events.map(({ agent, seq }) => [agent, seq])).toEqual([
      ['live', 1],
      ['live', 2],
      ['live', 3],
    ])
    expect(caughtUp).toBe(1)
  })

  it('reconnect without a gap or a duplicate', async () => {
    const gaps = client.collection('gaps')
    await gaps.writeBatch([{ n: 1 }, { n: 2 }, { n: 3 }])
    let connections = 0
    // The first connection is interrupted after its first bytes; the subscription must reconnect.
    const cuttingFetch: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      connections += 1
      if (connections > 1 || !response.body) return response
      const reader = response.body.getReader()
      let pieces = 0
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          pieces += 1
          if (pieces > 1) return controller.error(new TypeError('cut'))
          const { value } = await reader.read()
          if (value) controller.enqueue(value)
        },
      })
      return new Response(body, { headers: response.headers })
    }
    const timing = {
      pause: async () => undefined,
      random: Math.random,
      nowMs: Date.now,
      monotonicMs: Date.now,
    }
    const cutting = new ServiceClient({
      url: server.url,
      apiKey: server.rootKey,
      fetch: cuttingFetch,
      timing,
    })
    const onReconnect = () => void gaps.write({ n: 4 })
    const events = await eventsOf(4, (onEvent) =>
      cutting.subscribeAgent('gaps', onEvent, { since: 0, onReconnect }),
    )
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
    expect(connections).toBeGreaterThan(1)
  })

  it('deliver only events that have the field, and only of the named agents', async () => {
    const onOpen = async () => {
      await client.collection('aside').write({ wanted: 0 })
      await client.collection('filtered').writeBatch([{ other: 1 }, { wanted: 2 }])
      await client.collection('named').write({ n: 3 })
    }
    await client.collection('filtered').write({ before: 1 })
    await client.collection('named').write({ before: 1 })
    let opened = 0
    const allOpen = () => {
      opened += 1
      if (opened === 3) void onOpen()
    }
    const [[filtered], [named], [both]] = await Promise.all([
      eventsOf(1, (onEvent) =>
        client.subscribeAgent('filtered', onEvent, { filter: 'wanted', onOpen: allOpen }),
      ),
      eventsOf(1, (onEvent) => client.subscribeGlobal(onEvent, { agents: ['named'], onOpen: allOpen })),
      eventsOf(1, (onEvent) =>
        client.subscribeGlobal(onEvent, { agents: ['named', 'filtered'], filter: 'wanted', onOpen: allOpen }),
      ),
    ])
    expect(filtered?.payload).toEqual({ wanted: 2 })
    expect(named).toMatchObject({ agent: 'named', payload: { n: 3 } })
    expect(both).toMatchObject({ agent: 'filtered', payload: { wanted: 2 } })
  })

  it('end with the refusal', async () => {
    const refused = await new Promise((onError) =>
      client.subscribeAgent('anonymous', () => undefined, { onError }),
    )
    expect(refused).toBeInstanceOf(NotFoundError)
  })
})

describe('proof, against a running server', () => {
  it('exports a strand that verifies, whole and in part', async () => {
    const kept = client.collection('kept')
    await kept.writeBatch(Array.from({ length: 40 }, (_, n) => ({ n, text: 'Zoë "\\"' })))
    await client.ingestMany(
      'kept',
      Array.from({ length: 60 }, (_, n) => ({ n })),
    )
    const { public_key: publicKey, strand } = await kept.status()
    const head = await kept.head()
    const whole = await client.verify(await client.exportStrand({ agent: 'kept' }), { publicKey })
    expect(whole).toMatchObject({ ok: true, agent: 'kept', strand, records: 101, chainHead: head.chain_head })
    const part = await client.verify(await client.exportStrand({ agent: 'kept', fromSeq: 10, toSeq: 19 }), {
      publicKey,
    })
    expect(part).toMatchObject({ ok: true, partial: true, records: 10, firstSeq: 10, lastSeq: 19 })
    const other = await client.verify(await client.exportStrand({ agent: 'kept' }), {
      publicKey: '00'.repeat(32),
    })
    expect(other).toMatchObject({ ok: false, reason: 'No record is signed by the key given' })
  })

  it('returns a checkpoint and an inclusion proof', async () => {
    const proven = client.collection('proven')
    const { id, seq } = await proven.write({ n: 1 })
    const proof = await client.proof('proven', id)
    expect(proof).toMatchObject({ agent: 'proven', hash: id, seq, tree_size: 2 })
    expect(proof.path).toHaveLength(1)
    const checkpoint = await client.checkpoint('proven')
    expect(checkpoint).toContain(`strandfast/${(await proven.status()).strand}\n2\n`)
    expect(proof.checkpoint).toBe(checkpoint)
  })
})
