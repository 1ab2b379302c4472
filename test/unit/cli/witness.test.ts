import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type RequestListener, type Server, createServer } from 'node:http'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { witnessCommand } from '../../../src/cli/witness.js'

/* What a witness says of a log that a server made up: the server here answers with the vectors of test/vectors/logs.json. */

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
  const found = cases.find((one) => one.name === name)
  if (found === undefined) throw new Error(`Expected a vector "${name}"`)
  return found
}
const honest = vectorOf('told twice')

let directory = ''
let state = ''
let server: Server | undefined
let said = ''

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-witness-'))
  state = join(directory, 'state')
  said = ''
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((chunk) => ((said += String(chunk)), true))
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
  return ask(`http://127.0.0.1:${port}`, ...more)
}

const ask = (url: string, ...more: string[]) =>
  witnessCommand(['--state', state, '--url', url, '--key', 'k', '--log-key', honest.log_key, ...more])

/** Answers with a log, from the record that is asked for. */
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
  it('keeps the checkpoint of a log whose records all tell of heads', async () => {
    expect([await witness(serving(honest)), said]).toEqual([
      0,
      expect.stringContaining('3 records, the first one kept'),
    ])
    expect(readFileSync(state, 'utf8')).toBe(honest.note)
  })

  it('keeps the signatures of others that either note carries, until the log has grown', async () => {
    const cosigned = (by: string) => `\u2014 ${by} ${Buffer.alloc(76, by).toString('base64')}\n`
    const [one, two] = [cosigned('one.example/w1'), cosigned('two.example/w2')]
    expect(await witness(serving(honest))).toBe(0)
    writeFileSync(state, honest.note + one)
    for (const note of [honest.note, honest.note + two])
      expect(await witness(serving({ ...honest, note }))).toBe(0)
    expect(readFileSync(state, 'utf8')).toBe(honest.note + one + two)
    // A note has sixteen signatures at most: no server makes the witness forget those that it has, or keep one that it cannot read.
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
      'Record 1 of the log tells of no heads, or cannot be read',
    ],
    ['the record that tells more is withheld, the strand cut', 'Record 2 of the log tells of no heads'],
    ['a record of the log is of another type', 'Record 3 of the log tells of no heads'],
    ['a strand twice', 'Record 3 of the log tells of no heads'],
    ['a rewritten strand, told on with a smaller size', 'Record 2 of the log tells of 6 records'],
    ['the same head told again', 'Record 3 of the log tells of 8 records'],
  ])('finds a log wrong where %s', async (name, reason) => {
    const vector = vectorOf(name)
    // The checkpoint that counts all of its records, so that nothing else is wrong.
    const { checkpoint }: { checkpoint: string } = JSON.parse(vector.log.at(-1) ?? '')
    expect([await witness(serving({ ...vector, note: checkpoint })), said]).toEqual([
      1,
      expect.stringContaining(`NOT CONSISTENT: ${reason}`),
    ])
    expect(existsSync(state)).toBe(false)
  })

  it('finds a log wrong whose newest record is too old', async () => {
    expect([await witness(serving(honest), '--max-age', '60'), said]).toEqual([
      1,
      expect.stringMatching(/NOT CONSISTENT: The newest record of the log is \d+ seconds old/),
    ])
    expect(existsSync(state)).toBe(false)
    expect(await witness(serving(honest), '--max-age', '999999999')).toBe(0)
    expect(await ask('http://127.0.0.1:1', '--max-age', '0')).toBe(78)
  })

  it('exits 75 while the server is away, hangs up or is busy, and 1 where it refuses', async () => {
    expect(await ask('http://127.0.0.1:1')).toBe(75)
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
