import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import type { HttpResponse } from '../../../../src/front/engine/http-listener.js'

const folder = mkdtempSync(join(tmpdir(), 'strandfast-engine-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Pauses at each part, and resumes in the next turn but two. @returns the parts that arrived in between */
function readPaused(response: HttpResponse): { parts: number; largest: number; late: number } {
  const seen = { parts: 0, largest: 0, late: 0 }
  let isPaused = false
  response.onAborted(() => {})
  response.onData((part, isLast) => {
    seen.parts++
    seen.largest = Math.max(seen.largest, part.byteLength)
    if (isPaused) seen.late++
    if (isLast) response.end()
    else {
      isPaused = true
      response.pause()
      setImmediate(() =>
        setImmediate(() => {
          isPaused = false
          response.resume()
        }),
      )
    }
  })
  return seen
}

// Regression: it read up to a gigabyte of a client on the same machine after the pause.
it('delivers nothing of a paused connection, however fast its client sends', async () => {
  const { uwsListener } = await import('../../../../src/front/engine/uws.js')
  const body = join(folder, 'body')
  writeFileSync(body, '')
  truncateSync(body, 512 * 1_048_576)
  const listener = uwsListener({ tls: undefined })
  let seen = { parts: 0, largest: 0, late: 0 }
  listener.route('post', '/*', (response) => (seen = readPaused(response)))
  const port = await listener.listen('127.0.0.1', 0, false)
  const curl = spawn('curl', [
    '-sS',
    '-o',
    join(folder, 'answer'),
    '-X',
    'POST',
    '-T',
    body,
    `http://127.0.0.1:${port}/`,
  ])
  const [code] = (await once(curl, 'close')) as [number]
  listener.close()
  expect([code, seen.late]).toEqual([0, 0])
  // Otherwise the client was too slow for this test.
  expect(seen.largest).toBeGreaterThan(262_144)
})
