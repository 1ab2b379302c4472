import { readIfExists, writeDurably } from '../base/durable-file.js'
import { logAgent } from '../strand/organism-id.js'
import { parseLine } from '../proof/export-lines.js'
import { readHeads } from '../proof/heads.js'
import { runSync } from '../proof/job.js'
import { jobs } from '../proof/node/jobs.js'
import { verifyCheckpoint } from '../proof/node/compare-checkpoint.js'
import { verifyExport } from '../proof/node/verify-export.js'
import { type Checkpoint, parseCheckpoint, strandOf, withSignaturesOf } from '../proof/note.js'
import { isMembers, readBodyJson } from '../proof/strict-json.js'
import { growsFrom, pathOf } from '../proof/tree-proof.js'
import { checkpointOrigin } from '../strand/checkpoint.js'
import { parseHeader } from '../strand/header.js'
import { headsType } from '../strand/record-type.js'
import { tryEachUrl, boundedText, refusalOf } from './server-answer.js'
import { fetchReporting } from './server-client.js'
import { command, fail, exitCodes } from './command.js'
import { describeError, printableLines } from './printable.js'
import { type ServerTargets, SERVERS_USAGE, serverOptions, serversOf } from './server-url.js'
import { splitLines } from './split-lines.js'

const USAGE = `Usage: strandfast witness --state FILE [--log-key HEX] [--max-age SECS]
Fetches the checkpoint of a server's log of strand heads, checks that the log has only grown since the checkpoint in FILE, and stores
the new checkpoint there. Also reads the new records of the log: each must contain heads, and the sizes of a strand must
increase. The first run has no earlier checkpoint and trusts the server, except for the public key of the log if --log-key is given.
--max-age is the maximum age of the newest record of the log; the log grows whenever records are written.
${SERVERS_USAGE}Exit codes: 0 the log only grew; 1 the log was truncated or forked, cannot be read or is too old (FILE is unchanged); 75 the
server cannot be reached, closed the connection or is busy, so the log was not checked; 78 wrong usage.
`

/** Maximum length of a response; a proof has some thousand bytes. */
const RESPONSE_BYTES_MAX = 1_048_576

/** Milliseconds that the server may take for one response. */
const RESPONSE_MS_MAX = 60_000

interface WitnessRequest extends ServerTargets {
  state: string
  logKey: string | undefined
  maxAgeSecs: number | undefined
}

/** The server cannot be reached or is busy, so its log was not checked. */
class UnavailableError extends Error {}

/**
 * Checks a server's log and stores its newest checkpoint. To be run regularly, on another machine than the
 * server.
 * @returns the exit code: 0 the log only grew, 1 it did not, 75 the server is unavailable, 78 wrong usage
 */
export const witnessCommand = command({
  usage: USAGE,
  options: {
    state: { type: 'string' },
    ...serverOptions,
    'log-key': { type: 'string' },
    'max-age': { type: 'string' },
  },
  noServerExitCode: exitCodes.tryAgain,
  read({ state, 'max-age': maxAge, 'log-key': logKeyGiven, ...values }): WitnessRequest | string {
    if (state === undefined) return 'Expected --state FILE'
    const logKey = logKeyGiven?.toLowerCase()
    if (logKey !== undefined && !/^[0-9a-f]{64}$/.test(logKey))
      return 'Expected --log-key to be a public key of 64 hex digits'
    if (maxAge !== undefined && !/^[1-9][0-9]{0,8}$/.test(maxAge))
      return 'Expected --max-age to be a number of seconds'
    const maxAgeSecs = maxAge === undefined ? undefined : Number(maxAge)
    return { state, ...serversOf(values), logKey, maxAgeSecs }
  },
  async run(request) {
    try {
      return await witness(request)
    } catch (error) {
      const exitCode = error instanceof UnavailableError ? exitCodes.tryAgain : exitCodes.foundWrong
      return fail(`The log could not be checked: ${describeError(error)}`, exitCode)
    }
  },
})

async function witness(request: WitnessRequest): Promise<number> {
  const stored = readIfExists(request.state)
  const note = await fetchText(request, '/v1/log/checkpoint')
  if (stored !== undefined && parseCheckpoint(stored)?.origin !== parseCheckpoint(note)?.origin) {
    return alarm('The server has a different log', { stored, note })
  }
  const logKey = request.logKey ?? (await keyOfLog(request, note))
  const now = verifyCheckpoint(note, logKey)
  if (now === undefined) return alarm('The checkpoint is not signed by the key of the log', { stored, note })
  const before = stored === undefined ? undefined : verifyCheckpoint(stored, logKey)
  if (stored !== undefined && before === undefined) {
    return alarm('The earlier checkpoint is not signed by the key of the log', { stored, note })
  }
  const reason =
    (before === undefined ? undefined : await faultBetween(request, before, now)) ??
    (await faultOfHeads(request, { logKey, before, now }))
  if (reason !== undefined) return alarm(reason, { stored, note })
  const newest = stored === undefined ? note : withSignaturesOf(stored, note)
  if (newest !== stored) writeDurably(request.state, newest)
  const previous = before === undefined ? 'first checkpoint stored' : `${before.size} before`
  process.stdout.write(printableLines(`${now.origin}: ${now.size} records, ${previous}\n`))
  return exitCodes.fine
}

/**
 * @returns what is wrong with the tree of the log, compared with the stored checkpoint; undefined if nothing
 * is
 */
async function faultBetween(
  request: WitnessRequest,
  before: Checkpoint,
  now: Checkpoint,
): Promise<string | undefined> {
  if (now.size < before.size)
    return `The log was truncated: it had ${before.size} records and has ${now.size}`
  if (now.size === before.size) {
    return now.rootHex === before.rootHex
      ? undefined
      : `The log was forked: it still has ${now.size} records, but not the same ones`
  }
  const response = await fetchText(request, `/v1/log/consistency?from=${before.size}&to=${now.size}`)
  const path = pathOf(membersOf(response)['path'])
  const between = { from: before.size, to: now.size, fromRootHex: before.rootHex, toRootHex: now.rootHex }
  if (path !== undefined && runSync(growsFrom({ ...between, path }), jobs)) return undefined
  return `The log was forked: its ${now.size} records do not begin with the earlier ${before.size} records`
}

/**
 * @returns what is wrong with the records of the log since the stored checkpoint, or with their age;
 * undefined if nothing is
 */
async function faultOfHeads(
  request: WitnessRequest,
  { logKey, before, now }: { logKey: string; before: Checkpoint | undefined; now: Checkpoint },
): Promise<string | undefined> {
  const fromSeq = before === undefined ? 0 : Math.min(before.size, now.size - 1)
  const query = `agent=${encodeURIComponent(logAgent)}&from_seq=${fromSeq}&to_seq=${now.size - 1}`
  const response = await open(request, `/v1/strand/export?${query}`)
  if (response.body === null) throw new UnavailableError('The server returned no export of its log')
  const heads = new NewHeads()
  const lines = heads.read(splitLines(streamOf(response.body)))
  const verified = await verifyExport(lines, { publicKey: logKey, strand: strandOf(now) })
  if (!verified.ok) return `The log cannot be read: line ${verified.line}: ${verified.reason}`
  if (verified.firstSeq !== fromSeq || verified.lastSeq !== now.size - 1)
    return 'The server returned other records of the log than requested'
  if (heads.fault !== undefined) return heads.fault
  const ageSecs = Math.floor((Date.now() - heads.lastMs) / 1_000)
  const { maxAgeSecs = Infinity } = request
  return ageSecs > maxAgeSecs ? `The newest record of the log is ${ageSecs} seconds old` : undefined
}

/** Checks the heads in the records of a log as they arrive. */
class NewHeads {
  readonly #sizes = new Map<string, number>()
  fault: string | undefined
  /** The time of the last record, Unix milliseconds. */
  lastMs = 0

  async *read(lines: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const line of lines) {
      this.#check(line)
      yield line
    }
  }

  #check(line: string): void {
    const read = parseLine(line)
    const record = read !== undefined && 'record' in read ? read.record : undefined
    const header = record && parseHeader(record.h)
    if (record === undefined || header === undefined) return
    this.lastMs = Number.parseInt(header.hlc.slice(0, 12), 16)
    if (header.seq === 0) return
    const logged = header.type === headsType && record.body !== undefined ? readHeads(record.body) : undefined
    if (logged === undefined)
      this.fault ??= `Record ${header.seq} of the log contains no heads, or cannot be read`
    for (const { strand, size } of logged?.heads ?? []) {
      const last = this.#sizes.get(strand) ?? 0
      if (size <= last)
        this.fault ??= `Record ${header.seq} of the log names ${size} records of ${strand}, but an earlier record names ${last}`
      this.#sizes.set(strand, size)
    }
  }
}

async function* streamOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (cause) {
    throw new UnavailableError('The server closed the connection', { cause })
  }
}

/** The members of a response; none if it is not a JSON object. */
function membersOf(text: string): Record<string, unknown> {
  const value = readBodyJson(text)?.value
  return isMembers(value) ? value : {}
}

/**
 * The public key of the log of a note. The note names the log's strand, which is the hash of its genesis
 * record, and that record contains the key, so the server cannot substitute another key.
 */
async function keyOfLog(request: WitnessRequest, note: string): Promise<string> {
  const agent = encodeURIComponent(logAgent)
  const genesis = await fetchText(request, `/v1/strand/export?agent=${agent}&to_seq=0`)
  const verified = await verifyExport(genesis.trimEnd().split('\n'))
  if (!verified.ok) throw new Error(`The first record of the log does not verify: ${verified.reason}`)
  if (!note.startsWith(`${checkpointOrigin(verified.strand)}\n`)) {
    throw new Error('The checkpoint belongs to another log than the first record that the server returned')
  }
  return verified.publicKey
}

async function fetchText(request: WitnessRequest, path: string): Promise<string> {
  const response = await open(request, path)
  try {
    return await boundedText(response, RESPONSE_BYTES_MAX)
  } catch (cause) {
    // fetch throws a TypeError if the connection is lost; boundedText throws an Error if the response is too
    // long.
    throw cause instanceof TypeError
      ? new UnavailableError('The server closed the connection', { cause })
      : cause
  }
}

/**
 * Begins a request.
 * @throws UnavailableError if the server cannot be reached or is busy; Error if it refuses
 */
async function open({ urls, key }: WitnessRequest, path: string): Promise<Response> {
  const headers = new Headers(key === undefined ? {} : { authorization: `Bearer ${key}` })
  let response: Response
  try {
    response = await tryEachUrl(urls, (url) => {
      const signal = AbortSignal.timeout(RESPONSE_MS_MAX)
      return fetchReporting(urls)(url + path, { headers, signal, redirect: 'error' })
    })
  } catch (cause) {
    throw new UnavailableError('The server cannot be reached', { cause })
  }
  if (response.ok) return response
  const message = `${path}: ${await refusalOf(response).catch(() => response.status)}`
  throw response.status >= 500 || response.status === 429 ? new UnavailableError(message) : new Error(message)
}

/** Prints what is wrong and both checkpoints, which together prove it. */
function alarm(reason: string, { stored, note }: { stored: string | undefined; note: string }): number {
  const notes = `stored:\n${stored ?? 'none\n'}\nfrom the server:\n${note}`
  process.stdout.write(printableLines(`NOT CONSISTENT: ${reason}\n\n${notes}`))
  return exitCodes.foundWrong
}
