import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type RequestListener, type Server, createServer } from 'node:http'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { witnessCommand } from '../../../src/cli/witness.js'

/*
 * A witness of a server with a forged log: the test server responds with the vectors of
 * test/vectors/logs.json.
 */

interface LogVector {
  name: string
  log: string[]
  note: string
  log_key: string
}
const { cases }: { cases: LogVector[] } = JSON.parse(
  readFileSync(new URL('../../vectors/logs.json', import.meta.url), 'utf8'),
)
function vectorOf(name: string): LogVector {
  const vector = cases.find((known) => known.name === name)
  if (vector === undefined) throw new Error(`Vector "${name}" not found`)
  return vector
}
const honest = vectorOf('told twice')

let directory = ''
let state = ''
let server: Server | undefined
let output = ''

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-witness-'))
  state = join(directory, 'state')
  output = ''
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((chunk) => ((output += String(chunk)), true))
})
afterEach(() => {
  vi.restoreAllMocks()
  server?.close()
  server?.closeAllConnections()
  rmSync(directory, { recursive: true })
})

async function witness(listener: RequestListener, ...more: string[]): Promise<number> {
  server?.close()
  const started = createServer(listener)
  server = started
  await once(started.listen(0, '127.0.0.1'), 'listening')
  const address = started.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return witnessAt(`http://127.0.0.1:${port}`, ...more)
}

const witnessAt = (url: string, ...more: string[]) =>
  witnessCommand(['--state', state, '--url', url, '--api-key', 'k', '--log-key', honest.log_key, ...more])

/** Responds with the checkpoint of a log, or with its records from the requested one. */
const serving =
  ({ log: [manifest = '', ...records], note }: LogVector): RequestListener =>
  (request, response) => {
    const from = Number(/from_seq=(\d+)/.exec(request.url ?? '')?.[1] ?? 0)
    const trailer = JSON.parse(records.at(-1) ?? '')
    const log = [
      manifest.replace('"from_seq":0', `"from_seq":${from}`),
      ...records.slice(from, -1),
      JSON.stringify({ ...trailer, records: trailer.records - from }),
    ]
    response.end(request.url === '/v1/log/checkpoint' ? note : log.map((line) => `${line}\n`).join(''))
  }

describe('a witness', () => {
  it('stores the checkpoint of a log whose records all contain heads', async () => {
    expect([await witness(serving(honest)), output]).toEqual([
      0,
      expect.stringContaining('3 records, first checkpoint stored'),
    ])
    expect(readFileSync(state, 'utf8')).toBe(honest.note)
  })

  it('merges the cosignatures of the stored note and the new note, until the log has grown', async () => {
    const cosigned = (by: string) => `\u2014 ${by} ${Buffer.alloc(76, by).toString('base64')}\n`
    const [one, two] = [cosigned('one.example/w1'), cosigned('two.example/w2')]
    expect(await witness(serving(honest))).toBe(0)
    writeFileSync(state, honest.note + one)
    for (const note of [honest.note, honest.note + two])
      expect(await witness(serving({ ...honest, note }))).toBe(0)
    expect(readFileSync(state, 'utf8')).toBe(honest.note + one + two)
    // A note has at most sixteen signatures: a server cannot displace stored ones, or make the witness store
    // unreadable ones.
    const many = Array.from({ length: 15 }, (_none, n) => cosigned(`n${n}.example`)).join('')
    expect(await witness(serving({ ...honest, note: honest.note + many }))).toBe(0)
    expect(readFileSync(state, 'utf8')).toBe(
      honest.note + one + two + many.split('\n').slice(0, 13).join('\n') + '\n',
    )
    expect(await witness(serving(honest))).toBe(0)
  })

  it.each([
    [
      'a record of the log is erased, the strand whole',
      'Record 1 of the log contains no heads, or cannot be read',
    ],
    ['the record that tells more is withheld, the strand cut', 'Record 2 of the log contains no heads'],
    ['a record of the log is of another type', 'Record 3 of the log contains no heads'],
    ['a strand twice', 'Record 3 of the log contains no heads'],
    ['a rewritten strand, told on with a smaller size', 'Record 2 of the log names 6 records'],
    ['the same head told again', 'Record 3 of the log names 8 records'],
  ])('reports a log in which %s', async (name, reason) => {
    const vector = vectorOf(name)
    // The checkpoint covers all records of the log, so that nothing else is wrong.
    const { checkpoint }: { checkpoint: string } = JSON.parse(vector.log.at(-1) ?? '')
    expect([await witness(serving({ ...vector, note: checkpoint })), output]).toEqual([
      1,
      expect.stringContaining(`NOT CONSISTENT: ${reason}`),
    ])
    expect(existsSync(state)).toBe(false)
  })

  it('reports a log whose newest record is too old', async () => {
    expect([await witness(serving(honest), '--max-age', '60'), output]).toEqual([
      1,
      expect.stringMatching(/NOT CONSISTENT: The newest record of the log is \d+ seconds old/),
    ])
    expect(existsSync(state)).toBe(false)
    expect(await witness(serving(honest), '--max-age', '999999999')).toBe(0)
    expect(await witnessAt('http://127.0.0.1:1', '--max-age', '0')).toBe(78)
  })

  it('exits 75 when the server cannot be reached, closes the connection or is busy, and 1 when it refuses', async () => {
    expect(await witnessAt('http://127.0.0.1:1')).toBe(75)
    expect(await witness((_request, response) => response.writeHead(503).end())).toBe(75)
    expect(await witness((_request, response) => response.writeHead(429).end())).toBe(75)
    expect(await witness((request) => request.socket.destroy())).toBe(75)
    const cutOff: RequestListener = (request, response) => {
      if (request.url === '/v1/log/checkpoint') return response.end(honest.note)
      response.write(honest.log[0], () => request.socket.destroy())
    }
    expect(await witness(cutOff)).toBe(75)
    expect(await witness((_request, response) => response.writeHead(401).end())).toBe(1)
    expect(existsSync(state)).toBe(false)
  })
})
