import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ServiceClient } from '../../src/client/index.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { eventually } from '../support/eventually.js'
import { freePort } from '../support/server/free-port.js'
import { call } from '../support/server/server.js'
import { type StaticServer, startStaticServer } from '../support/server/static-server.js'

declare global {
  /** The client module in the page. */
  var strandfast: typeof import('../../src/client/index.js')
  /** The sequence numbers that a subscription of the page has received. */
  var seenSeqs: number[]
}

/**
 * The page imports the client itself, because a function that is sent to the page as text cannot contain an
 * import.
 */
const PAGE = `<!doctype html>
<script type="module">import * as client from '/packages/client/dist/index.js'; globalThis.strandfast = client</script>`

/**
 * The argument of functions that run in the page. They are sent as text, so they can use only the client and
 * this argument.
 */
type InPage = { url: string; apiKey: string }

describe.skipIf(noBrowser)('the client in a browser', () => {
  let pages: StaticServer
  let service: Awaited<ReturnType<typeof startAuthServer>>
  let browser: Browser
  let page: Page
  let access: InPage
  let environment: Record<string, string>

  beforeAll(async () => {
    pages = await startStaticServer(PAGE)
    environment = { SERVICE_CORS_ORIGINS: pages.origin, SERVICE_PORT: String(await freePort()) }
    service = await startAuthServer({ env: environment })
    access = { url: service.url, apiKey: service.rootKey }
    browser = await sharedBrowser()
    page = await browser.newPage()
    await page.goto(`${pages.origin}/`)
  })

  afterAll(async () => {
    await service?.stop()
    pages?.stop()
  })

  it('writes, reads, deletes and lists across origins', async () => {
    const seen = await page.evaluate(async (options) => {
      const { ServiceClient } = strandfast
      const client = new ServiceClient(options)
      const notes = client.collection<{ title: string }>('notes')
      const first = await notes.write({ title: 'Grüße' })
      await notes.writeBatch([{ title: 'b' }, { title: 'c' }], { ifMatch: first.hash })
      const record = await notes.get(first.hash)
      const { records } = await notes.latest()
      return {
        alive: await client.ping(),
        title: record.data?.title,
        titles: records.map((row) => row.data.title),
        head: await notes.head(),
        agents: (await client.listAgents({ prefix: 'notes' })).agents,
      }
    }, access)
    expect(seen).toMatchObject({
      alive: true,
      title: 'Grüße',
      titles: ['c', 'b', 'Grüße'],
      head: { record_count: 3 },
      agents: ['notes'],
    })
  })

  it('checks the logged head of a strand, and that the log has only grown', async () => {
    await eventually(async () => (await call(service, 'GET /v1/log/proof?agent=default')).status === 200)
    const seen = await page.evaluate(async (options) => {
      const { ServiceClient, verifyConsistency, verifyLoggedHead } = strandfast
      const client = new ServiceClient(options)
      const { public_key: logKey } = await client.agent('server::log').status()
      const proof = await client.log.proof('default')
      const kept = (await client.log.proof('default', { at: proof.log.seq + 1 })).log.checkpoint
      const grown = await client.log.consistency(proof.log.seq + 1)
      return {
        head: await verifyLoggedHead(proof, { logKey }),
        other: await verifyLoggedHead({ ...proof, size: proof.size + 1 }, { logKey }),
        grown: await verifyConsistency(kept, grown, { publicKey: logKey }),
      }
    }, access)
    expect(seen).toMatchObject({ head: { ok: true }, other: { ok: false }, grown: { ok: true } })
  })

  it('reads the code and the request id of a refusal across origins', async () => {
    const seen = await page.evaluate(async (options) => {
      const { NotFoundError, ServiceClient } = strandfast
      try {
        await new ServiceClient(options).agent('unknown').head()
        return undefined
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error
        return { code: error.code, hasRequestId: error.requestId !== undefined }
      }
    }, access)
    expect(seen).toEqual({ code: 'agent_not_found', hasRequestId: true })
  })

  it('ingests in chunks, because browsers cannot stream a request over HTTP/1.1', async () => {
    const summary = await page.evaluate(async (options) => {
      const { ServiceClient } = strandfast
      const client = new ServiceClient(options)
      await client.createAgent('sensors', undefined, 'free')
      const readings = Array.from({ length: 5_000 }, (_, n) => ({
        n,
        unit: 'celsius',
        text: 'x'.repeat(400),
      }))
      return client.ingestMany('sensors', readings)
    }, access)
    expect(summary).toMatchObject({ accepted: 5_000, rejected: 0, first_seq: 1, last_seq: 5_000 })
  })

  it('reconnects an interrupted stream without a gap or a duplicate', async () => {
    const seen = await page.evaluate(async (options) => {
      const { ServiceClient } = strandfast
      let connections = 0
      // Interrupts the first connection after it has delivered a record.
      const cuttingFetch: typeof fetch = async (input, init) => {
        const response = await fetch(input, init)
        connections += 1
        const reader = connections === 1 ? response.body?.getReader() : undefined
        if (!reader) return response
        let cut = false
        const body = new ReadableStream<Uint8Array>({
          async pull(controller) {
            if (cut) return controller.error(new TypeError('cut'))
            const { value } = await reader.read()
            if (!value) return controller.close()
            controller.enqueue(value)
            cut = new TextDecoder().decode(value).includes('event: record')
          },
        })
        return new Response(body, { headers: response.headers })
      }
      const writer = new ServiceClient(options).collection('streamed')
      await writer.writeBatch([{ n: 1 }, { n: 2 }, { n: 3 }])
      const client = new ServiceClient({ ...options, fetch: cuttingFetch })
      const seqs: number[] = []
      await new Promise<void>((resolve, reject) => {
        const subscription = client.subscribeAgent(
          'streamed',
          (event) => {
            seqs.push(event.seq)
            if (event.seq < 4) return
            subscription.close()
            resolve()
          },
          { since: 0, onReconnect: () => void writer.write({ n: 4 }), onError: reject },
        )
      })
      return { seqs, connections }
    }, access)
    expect(seen).toEqual({ seqs: [1, 2, 3, 4], connections: 2 })
  })

  it('continues a stream after a restart of the server, with each record once', async () => {
    const writer = new ServiceClient(access).collection('restarted')
    await writer.writeBatch([{ n: 1 }, { n: 2 }])
    const opened = page.evaluate(
      (options) =>
        new Promise<void>((onCaughtUp, onError) => {
          globalThis.seenSeqs = []
          const onEvent = ({ seq }: { seq: number }) => void seenSeqs.push(seq)
          const { ServiceClient } = strandfast
          new ServiceClient(options).subscribeAgent('restarted', onEvent, { since: 0, onCaughtUp, onError })
        }),
      access,
    )
    await opened
    await service.halt()
    service = await startAuthServer({ dataDir: service.dataDir, env: environment })
    await writer.writeBatch([{ n: 3 }, { n: 4 }])
    await page.waitForFunction(() => seenSeqs.length >= 4)
    await writer.write({ n: 5 })
    await page.waitForFunction(() => seenSeqs.length >= 5)
    expect(await page.evaluate(() => seenSeqs)).toEqual([1, 2, 3, 4, 5])
  })

  it('opens a native EventSource with a ticket and reopens it from its cursor, but opens no other stream', async () => {
    const seen = await page.evaluate(async (options) => {
      const client = new strandfast.ServiceClient(options)
      await client.collection('native').writeBatch([{ n: 1 }, { n: 2 }])
      const { ticket } = await client.streamTicket()
      const recordsOf = (query: string) =>
        new Promise<{ records: string[]; cursor: string }>((resolve, reject) => {
          const records: string[] = []
          let cursor = ''
          const source = new EventSource(`${options.url}/v1/agents/native/stream?ticket=${ticket}&${query}`)
          source.addEventListener('record', ({ data, lastEventId }) => {
            records.push(JSON.parse(data).payload.n)
            cursor = lastEventId
          })
          source.addEventListener('caught_up', () => {
            source.close()
            resolve({ records, cursor })
          })
          source.addEventListener('error', reject)
        })
      const first = await recordsOf('since=0')
      await client.collection('native').write({ n: 3 })
      const again = await recordsOf(`since=0&last_event_id=${encodeURIComponent(first.cursor)}`)
      const other = await new Promise<number>((resolve) => {
        const source = new EventSource(`${options.url}/v1/stream?ticket=${ticket}`)
        source.addEventListener('error', () => resolve(source.readyState))
      })
      return { first: first.records, again: again.records, other, closed: EventSource.CLOSED }
    }, access)
    expect(seen).toMatchObject({ first: [1, 2], again: [3], other: seen.closed })
  })

  it('signs up, reads the user, refreshes and signs out across origins', async () => {
    const seen = await page.evaluate(async ({ url }) => {
      const { auth } = new strandfast.ServiceClient({ url })
      const sessions: boolean[] = []
      auth.onSessionChange((session) => void sessions.push(session !== undefined))
      const credentials = { email: 'alice@example.org', password: 'nine slow herons by the weir' }
      const { token } = await auth.register(credentials)
      const { email } = await auth.me()
      const { user_metadata } = await auth.updateUserMetadata({ name: 'Zoë' })
      const refreshed = await auth.refresh()
      const { logged_out } = await auth.logout()
      const code = await auth.me().catch((error: { code?: string }) => error.code)
      return { email, user_metadata, isNew: refreshed.token !== token, logged_out, code, sessions }
    }, access)
    expect(seen).toEqual({
      email: 'alice@example.org',
      user_metadata: { name: 'Zoë' },
      isNew: true,
      logged_out: true,
      code: 'unauthorized',
      sessions: [true, true, false],
    })
  })

  it('gets no answer for an origin that is not allowed', async () => {
    const otherPage = await browser.newPage()
    // The same pages at another host name have another origin.
    await otherPage.goto(`${pages.origin.replace('127.0.0.1', 'localhost')}/`)
    const seen = await otherPage.evaluate(async (options) => {
      const { NetworkError, ServiceClient } = strandfast
      const client = new ServiceClient({ ...options, timeoutMs: 50 })
      const failure = await client.listAgents().catch((error: unknown) => error)
      return { alive: await client.ping(), blocked: failure instanceof NetworkError }
    }, access)
    await otherPage.close()
    expect(seen).toEqual({ alive: false, blocked: true })
  })

  it('exports and verifies with WebCrypto, and finds a changed record', async () => {
    const seen = await page.evaluate(async (options) => {
      const { ServiceClient } = strandfast
      const client = new ServiceClient(options)
      const ledger = client.collection('ledger')
      await ledger.writeBatch(Array.from({ length: 200 }, (_, n) => ({ n, name: 'Zoë' })))
      const { public_key: publicKey } = await ledger.status()
      const whole = await client.verify(await client.exportStrand({ agent: 'ledger' }), { publicKey })
      const text = await new Response(await client.exportStrand({ agent: 'ledger' })).text()
      const damaged = await client.verify(text.replace('\\"n\\":99,', '\\"n\\":98,'), { publicKey })
      return { whole, damaged }
    }, access)
    expect(seen.whole).toMatchObject({ ok: true, agent: 'ledger', records: 201, partial: false })
    expect(seen.damaged).toMatchObject({
      ok: false,
      seq: 100,
      reason: 'The body is not the one committed to',
    })
  })
})
