import { closeSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { call, startServer, type TestServer } from '../support/server/server.js'

const MARKER = 'a-body-that-is-damaged-on-the-disk'

let server: TestServer

beforeEach(async () => {
  server = await startServer()
})

afterEach(() => server.stop())

/** Flushes the log to the store by an export, so that reads come from the disk. */
async function flush(): Promise<void> {
  const { status } = await call(server, 'GET /v1/strand/export?agent=damaged')
  expect(status).toBe(200)
}

/**
 * Changes one byte of every copy of the marker in the data directory, as a failing disk would. Repeats until
 * it finds no copy, because the server may write the page to another position at the same time.
 */
function damageMarker(): number {
  let damaged = 0
  for (let more = damageOnce(); more > 0; more = damageOnce()) damaged += more
  return damaged
}

function damageOnce(): number {
  let damaged = 0
  const files = readdirSync(server.dataDir, { recursive: true, encoding: 'utf8' })
  for (const file of files.map((name) => join(server.dataDir, name))) {
    if (!statSync(file).isFile()) continue
    const bytes = readFileSync(file)
    const descriptor = openSync(file, 'r+')
    for (let at = bytes.indexOf(MARKER); at !== -1; at = bytes.indexOf(MARKER, at + 1)) {
      writeSync(descriptor, 'A', at)
      damaged++
    }
    closeSync(descriptor)
  }
  return damaged
}

async function write(text: string): Promise<string> {
  const written = await call(server, 'POST /v1/collections/damaged/records', { body: { data: { text } } })
  expect(written.status).toBe(201)
  return written.body.record_id
}

describe('a record whose bytes have changed on disk', () => {
  it('is never served: reads return 500, and other records are still served', async () => {
    const sound = await write('sound')
    const damaged = await write(MARKER)
    const later = await write('sound too')
    await flush()
    expect(damageMarker()).toBeGreaterThan(0)
    const reads: [string, unknown][] = [
      [`GET /v1/agents/damaged/records/${damaged}`, undefined],
      ['POST /v1/agents/damaged/query', { type: 'latest' }],
      ['POST /v1/agents/damaged/query', { type: 'hash', hash: damaged }],
    ]
    for (const [route, body] of reads) {
      const answer = await call(server, route, body === undefined ? {} : { body })
      expect({ route, status: answer.status, code: answer.body.code }).toEqual({
        route,
        status: 500,
        code: 'internal_error',
      })
      expect(answer.text).not.toMatch(/body-that-is/)
    }
    for (const hash of [sound, later]) {
      expect((await call(server, `GET /v1/agents/damaged/records/${hash}`)).status).toBe(200)
    }
    expect((await call(server, 'GET /readyz')).status).toBe(200)
    await write('written on')
    expect(server.stderr()).toContain('checksum')
  })

  it('aborts an export in the middle, so that it does not look complete', async () => {
    await write(MARKER)
    await flush()
    expect(damageMarker()).toBeGreaterThan(0)
    await expect(call(server, 'GET /v1/strand/export?agent=damaged')).rejects.toThrow()
    expect((await call(server, 'GET /v1/strand/export')).status).toBe(200)
  })
})
