// @run first
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { headOf } from '../support/http/answers.js'
import { RawConnection } from '../support/http/raw-http.js'
import { run } from '../support/server/command.js'
import { memoryBytes } from '../support/server/process-figures.js'
import { startServer, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * Regression: no test had a body of more than a few megabytes, and a client that sent quickly could not upload
 * 130 MB: what uWebSockets.js had read of a paused connection ended the upload with 503.
 */

const folder = mkdtempSync(join(tmpdir(), 'strandfast-large-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Lines of about `lineBytes`, as many as fit into `bytes`. @returns their number */
async function writeLines(path: string, { bytes, lineBytes }: { bytes: number; lineBytes: number }) {
  const count = Math.floor(bytes / lineBytes)
  function* lines() {
    for (let n = 0; n < count; n++) yield `${JSON.stringify({ n, text: 'x'.repeat(lineBytes) })}\n`
  }
  await pipeline(Readable.from(lines()), createWriteStream(path))
  return count
}

/** Uploads with curl, as docs/PIPELINES.md does. */
async function curl(server: TestServer, agent: string, options: readonly string[]) {
  const about = ['-sS', '-X', 'POST', '-H', 'Content-Type: application/x-ndjson']
  const credential = ['-H', `Authorization: Bearer ${server.rootKey}`]
  const child = spawn('curl', [...about, ...credential, ...options, `${server.url}/v1/ingest/${agent}`])
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()))
  await once(child, 'close')
  return stdout === '' ? { stderr } : (JSON.parse(stdout) as { accepted?: number; rejected?: number })
}

/** The most memory that a server takes while `work` runs, beyond what it takes now. */
async function growth(server: TestServer, work: () => Promise<void>): Promise<number> {
  const before = memoryBytes(server)
  let most = before
  const sampling = setInterval(() => (most = Math.max(most, memoryBytes(server))), 100)
  await work().finally(() => clearInterval(sampling))
  return most - before
}

const MEBIBYTE = 1 << 20
/** A server needs less than this for a body of any size: pieces of bodies, chunks, blocks, and garbage. */
const GROWTH_MAX = 448 * MEBIBYTE

it('a gigabyte is uploaded, exported, verified and imported, in bounded memory', async () => {
  const body = join(folder, 'body.ndjson')
  const exported = join(folder, 'export.ndjson')
  const count = await writeLines(body, { bytes: 1_000_000_000, lineBytes: 100_000 })
  // With the same seed, so that the import can open the agent for writes.
  const options = { env: { SERVICE_MASTER_SEED: 'a1'.repeat(32) } }
  const [from, to] = [await startServer(options), await startServer(options)]
  try {
    const env = ({ url }: TestServer) => ({ SERVICE_ROOT_API_KEY: testRootKey, SERVICE_URL: url })
    const uploading = await growth(from, async () => {
      expect(await curl(from, 'large', ['-T', body])).toMatchObject({ accepted: count, rejected: 0 })
    })
    rmSync(body)
    const exporting = await growth(from, async () => {
      const saved = await run(['export', '--agent', 'large', '--url', from.url, '--out', exported], env(from))
      expect(saved).toMatchObject({
        status: 0,
        stderr: expect.stringContaining(`Saved ${count + 1} records`),
      })
    })
    expect(statSync(exported).size).toBeGreaterThan(1_000_000_000)
    const importing = await growth(to, async () => {
      const done = await run(['import', exported, '--url', to.url], env(to))
      expect(done).toMatchObject({
        status: 0,
        stdout: expect.stringContaining(`Imported ${count + 1} records`),
      })
    })
    expect(Math.max(uploading, exporting, importing)).toBeLessThan(GROWTH_MAX)
    // After the record of the import.
    expect((await headOf(to, 'large'))?.seq).toBe(count + 1)
  } finally {
    await Promise.all([from.stop(), to.stop()])
  }
}, 900_000)

describe.each(['auto', 'node'])('fast uploads, with the engine %s', (engine) => {
  let server: TestServer
  let count: number
  let smallCount: number
  const body = join(folder, `${engine}.ndjson`)
  const smallBody = join(folder, `${engine}-small.ndjson`)

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_HTTP_ENGINE: engine, SERVICE_SHARDS: '2' } })
    count = await writeLines(body, { bytes: 24_000_000, lineBytes: 20_000 })
    smallCount = await writeLines(smallBody, { bytes: 8_000_000, lineBytes: 20_000 })
    await pipeline(createReadStream(body), createGzip({ level: 1 }), createWriteStream(`${body}.gz`))
  })
  afterAll(() => server.stop())

  const whole = (accepted = count) => expect.objectContaining({ accepted, rejected: 0 })

  it.each([1, 4, 40])('are complete: %i together, of one key', async (together) => {
    const [path, lines] = together > 4 ? [smallBody, smallCount] : [body, count]
    const grown = await growth(server, async () => {
      const uploads = Array.from({ length: together }, (_none, n) =>
        curl(server, `together-${together}-${n}`, ['-T', path]),
      )
      expect(await Promise.all(uploads)).toEqual(uploads.map(() => whole(lines)))
    })
    expect(grown).toBeLessThan(GROWTH_MAX)
  })

  // What did not fit into the 64 MiB of one key was refused.
  it.each([
    ['arrays of 16 MiB', { path: '/v1/ingest/array-', bytes: 16 * MEBIBYTE, element: {} }],
    ['batches of 8 MiB', { path: '/v1/collections/batch-', bytes: 8 * MEBIBYTE, element: { data: {} } }],
  ])(
    'are complete: forty %s together, of one key',
    async (_title, { path, bytes, element }) => {
      const isBatch = 'data' in element
      const value = { text: 'x'.repeat(20_000) }
      const text = JSON.stringify(isBatch ? { data: value } : value)
      const [begin, end] = isBatch ? ['{"records":[', ']}'] : ['[', ']']
      const count = Math.floor((bytes - begin.length - end.length) / (text.length + 1))
      const body = `${begin}${Array<string>(count).fill(text).join(',')}${end}`.padEnd(bytes)
      const headers = { Authorization: `Bearer ${server.rootKey}`, 'Content-Type': 'application/json' }
      const grown = await growth(server, async () => {
        const requests = Array.from({ length: 40 }, async (_none, n) => {
          const url = `${server.url}${path}${n}${isBatch ? '/records/batch' : ''}`
          const answer = await fetch(url, { method: 'POST', headers, body })
          return [answer.status, await answer.text()]
        })
        const written = isBatch
          ? [201, expect.stringContaining('"results"')]
          : [200, expect.stringContaining(`"accepted":${count},"rejected":0`)]
        expect(await Promise.all(requests)).toEqual(requests.map(() => written))
      })
      expect(grown).toBeLessThan(GROWTH_MAX)
    },
    300_000,
  )

  it('are complete if they are compressed, or of unknown length', async () => {
    const coded = ['-H', 'Content-Encoding: gzip', '-T', `${body}.gz`]
    const chunked = ['-H', 'Transfer-Encoding: chunked', '-T', body]
    const uploads = [coded, chunked, coded, chunked].map((options, n) => curl(server, `coded-${n}`, options))
    expect(await Promise.all(uploads)).toEqual(uploads.map(() => whole()))
  })

  it.each([1, 17, 4_096, 65_537, 8_388_608])('are complete in chunks of %i bytes', async (chunkBytes) => {
    // Fewer small chunks than close a connection, should the server read all of them in one turn.
    const lineBytes = chunkBytes < 64 ? 20 : 5_000
    const count = chunkBytes < 64 ? 500 : Math.ceil((chunkBytes * 2.5) / lineBytes)
    const bytes = Buffer.from(`{"a":"${'x'.repeat(lineBytes - 9)}"}\n`.repeat(count))
    const connection = await RawConnection.open(server)
    connection.write(
      `POST /v1/ingest/chunks-${chunkBytes} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${testRootKey}\r\n` +
        'Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      const chunk = bytes.subarray(at, at + chunkBytes)
      connection.write(
        Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]),
      )
    }
    connection.write('0\r\n\r\n')
    const { text } = await connection.until(({ statuses }) => statuses.length > 0)
    expect(text).toContain(`"accepted":${count},"rejected":0`)
    connection.destroy()
  })
})
