import { fc } from '../fast-check.js'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { checkAnswer } from '../http/answers.js'
import type { ServerAddress, TestAnswer } from '../server/server.js'

/*
 * Random requests: generators, sending, and the checks of all answers. A server may refuse any request with a
 * code that its route documents, but must not fail.
 */

/** The cases of a fuzz test. */
export interface Fuzzing<T> {
  seed: number
  /** The number of random cases. A campaign repeats them with each of its seeds. */
  runs: number
  draw: fc.Arbitrary<T>
  /** Whether each case can run only once. Then failing cases are not shrunk. */
  once?: boolean
  /** Fixed cases that run before the random ones. The test may rely on them. */
  examples?: readonly T[]
}

/** Runs `check` on each case. A failing case is shrunk, and reported with its seed and path. */
export async function fuzz<T>(
  { seed, runs, draw, once = false, examples = [] }: Fuzzing<T>,
  check: (drawn: T) => Promise<void>,
): Promise<void> {
  const drawn = fc.asyncProperty(draw, check)
  const fixed = examples.map((example): [T] => [example])
  const numRuns = fixed.length + runs
  await fc.assert(drawn, { seed, numRuns, endOnFailure: once, examples: fixed })
}

/** A request that is sent unchanged: the path is not normalised. */
export interface RawCall {
  method: string
  path: string
  headers?: Record<string, string>
  body?: string | Uint8Array
}

const connections = new Agent({ keepAlive: true })
/** The timeout of an answer. */
const ANSWER_MS = 20_000

/**
 * Calls the server with the root key, unless `headers` has another credential. Only the head of a stream is
 * read.
 */
export async function rawCall(
  server: ServerAddress,
  { method, path, headers, body }: RawCall,
): Promise<TestAnswer> {
  const { hostname, port } = new URL(server.url)
  // Also for DELETE: node:http would send the body without a length, and the server would read it as a
  // request.
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const sent = httpRequest({
    hostname,
    port,
    method,
    path,
    headers: { authorization: `Bearer ${server.rootKey}`, ...headers, ...length },
    agent: connections,
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  sent.end(body)
  const [response]: IncomingMessage[] = await once(sent, 'response')
  if (response === undefined) throw new Error('Expected an answer')
  const answered = new Headers()
  for (const [name, values] of Object.entries(response.headersDistinct)) {
    for (const value of values ?? []) answered.append(name, value)
  }
  const status = response.statusCode ?? 0
  if (answered.get('content-type')?.startsWith('text/event-stream') === true) {
    response.on('error', () => {})
    sent.destroy()
    return answerOf(status, answered, '')
  }
  const bytes = await buffer(response)
  return answerOf(status, answered, decoded(bytes, answered.get('content-encoding')))
}

function decoded(bytes: Buffer, coding: string | null): string {
  if (coding === null) return bytes.toString()
  return (coding === 'br' ? brotliDecompressSync(bytes) : gunzipSync(bytes)).toString()
}

function answerOf(status: number, headers: Headers, text: string): TestAnswer {
  const type = headers.get('content-type') ?? ''
  const isJson = type.includes('json') && !type.includes('ndjson') && text !== ''
  return { status, headers, text, body: isJson ? JSON.parse(text) : undefined }
}

/** Like `rawCall`, but also checks that the route documents the answer, and that the server did not fail. */
export async function rawAsk(server: ServerAddress, sent: RawCall): Promise<TestAnswer> {
  const answer = await rawCall(server, sent)
  checkAnswer(`${sent.method} ${sent.path}`, answer)
  expectNoFailure(answer)
  return answer
}

/** Expects no server error, except 501 for a part that is not configured. */
export function expectNoFailure({ status, text }: Pick<TestAnswer, 'status' | 'text'>): void {
  if (status !== 501) expect(status, text).toBeLessThan(500)
}

/**
 * Texts that often cause errors, and random ones. Encoded in a path or a query, they fit into a header block.
 */
export const oddText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    ' ',
    '\0',
    'a\0b',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '\ud800',
    'a\udfffb',
    '\ufeff',
    '\u2028',
    '-0',
    'NaN',
    'null',
    'true',
    '1e999',
    '9007199254740993',
    '18446744073709551616',
    '../../etc/passwd',
    '%00',
    '%',
    '%2e%2e%2f',
    '*',
    'a::b',
    '::',
    "' OR 1=1 --",
    '${x}',
    'default',
  ),
  fc
    .tuple(fc.constantFrom('a', 'é', '0', '%41', '{', '['), fc.integer({ min: 100, max: 1_000 }))
    .map(([text, times]) => text.repeat(times)),
)

/** Removes the characters that are not allowed in headers. */
export function headerText(text: string): string {
  return text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '')
}

/** One change of some bytes. */
export type Change =
  | { do: 'set'; at: number; byte: number }
  | { do: 'flip'; at: number; bit: number }
  | { do: 'cut'; at: number }
  | { do: 'drop'; at: number; bytes: number }
  | { do: 'insert'; at: number; bytes: Uint8Array }
  | { do: 'repeat'; at: number; bytes: number }

const at = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })

/** Changes, each at a relative position from 0 to below 1. */
export const changes: fc.Arbitrary<Change[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('set' as const), at, byte: fc.integer({ min: 0, max: 255 }) }),
    fc.record({ do: fc.constant('flip' as const), at, bit: fc.integer({ min: 0, max: 7 }) }),
    fc.record({ do: fc.constant('cut' as const), at }),
    fc.record({ do: fc.constant('drop' as const), at, bytes: fc.integer({ min: 1, max: 16 }) }),
    fc.record({
      do: fc.constant('insert' as const),
      at,
      bytes: fc.uint8Array({ minLength: 1, maxLength: 16 }),
    }),
    fc.record({ do: fc.constant('repeat' as const), at, bytes: fc.integer({ min: 1, max: 64 }) }),
  ),
  { minLength: 1, maxLength: 4 },
)

/** Applies changes to bytes, one after another. */
export function changed(bytes: Uint8Array, by: readonly Change[]): Uint8Array {
  return by.reduce(applied, bytes)
}

function applied(bytes: Uint8Array, change: Change): Uint8Array {
  const position = Math.floor(change.at * bytes.length)
  const before = bytes.subarray(0, position)
  const byte = bytes[position] ?? 0
  switch (change.do) {
    case 'set':
      return Buffer.concat([before, Buffer.of(change.byte), bytes.subarray(position + 1)])
    case 'flip':
      return Buffer.concat([before, Buffer.of(byte ^ (1 << change.bit)), bytes.subarray(position + 1)])
    case 'cut':
      return before
    case 'drop':
      return Buffer.concat([before, bytes.subarray(position + change.bytes)])
    case 'insert':
      return Buffer.concat([before, change.bytes, bytes.subarray(position)])
    case 'repeat':
      return Buffer.concat([
        before,
        bytes.subarray(position, position + change.bytes),
        bytes.subarray(position),
      ])
  }
}

/** Applies changes to the bytes of a text. */
export function changedText(text: string, by: readonly Change[]): string {
  return Buffer.from(changed(Buffer.from(text), by)).toString('latin1')
}
