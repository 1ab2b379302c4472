import { readIfThere, writeDurably } from '../base/durable-file.js'
import { logAgent } from '../strand/organism-id.js'
import { parseLine } from '../proof/export-lines.js'
import { readHeads } from '../proof/heads.js'
import { runNow } from '../proof/job.js'
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
import { command, fail, exitCodes } from './command.js'
import { describeError, printableLines } from './printable.js'
import { type ServerTargets, SERVERS_USAGE, serverOptions, serversOf } from './server-url.js'
import { splitLines } from './split-lines.js'

const USAGE = `Usage: strandfast witness --state FILE [--log-key HEX] [--max-age SECS]
Asks a server for the checkpoint of its log of strand heads, sees that the log only grew since the checkpoint in FILE,
and keeps the new one there. The first run has nothing to compare with: it believes the server, or takes the public key
of the log. It reads the heads that are new in the log: each record tells of them with its body, and of a strand with
rising sizes. --max-age is how old the newest record of the log may be; a log grows while something is written.
${SERVERS_USAGE}Exit codes: 0 the log only grew; 1 it was cut, forked, cannot be read or is too old (FILE stays as it is); 75 the server is
away, hung up or is busy, so that nothing was seen; 78 wrong usage.
`

/** The most bytes of an answer; a proof has some thousand. */
const ANSWER_BYTES_MAX = 1_048_576

/** How long the server may take for one answer. */
const ANSWER_MS_MAX = 60_000

interface WitnessRequest extends ServerTargets {
  state: string
  logKey: string | undefined
  maxAgeSecs: number | undefined
}

/** The server is away or busy: nothing can be said about its log. */
class AwayError extends Error {}

/**
 * Keeps the newest checkpoint of a server's log, to be run again and again on another machine.
 * @returns the exit code: 0 the log only grew, 1 it did not, 75 it cannot be read now, 78 wrong usage
 */
export const witnessCommand = command({
  usage: USAGE,
  options: {
    state: { type: 'string' },
    ...serverOptions,
    'log-key': { type: 'string' },
    'max-age': { type: 'string' },
  },
  read({ state, 'max-age': maxAge, 'log-key': logKeyGiven, ...values }): WitnessRequest | string {
    if (state === undefined) return 'Expected --state'
    const logKey = logKeyGiven?.toLowerCase()
    if (logKey !== undefined && !/^[0-9a-f]{64}$/.test(logKey))
      return 'Expected --log-key to be a public key of 64 hex digits'
    if (maxAge !== undefined && !/^[1-9][0-9]{0,8}$/.test(maxAge)) return 'Expected --max-age to be seconds'
    const maxAgeSecs = maxAge === undefined ? undefined : Number(maxAge)
    const server = serversOf(values)
    return typeof server === 'string' ? server : { state, ...server, logKey, maxAgeSecs }
  },
  async run(request) {
    try {
      return await witness(request)
    } catch (error) {
      const exitCode = error instanceof AwayError ? exitCodes.tryAgain : exitCodes.foundWrong
      return fail(`The log could not be seen: ${describeError(error)}`, exitCode)
    }
  },
})

async function witness(request: WitnessRequest): Promise<number> {
  const kept = readIfThere(request.state)
  const note = await ask(request, '/v1/log/checkpoint')
  if (kept !== undefined && parseCheckpoint(kept)?.origin !== parseCheckpoint(note)?.origin) {
    return alarm('The server has another log', { kept, note })
  }
  const logKey = request.logKey ?? (await keyOfLog(request, note))
  const now = verifyCheckpoint(note, logKey)
  if (now === undefined) return alarm('The checkpoint is not signed by the key of the log', { kept, note })
  const before = kept === undefined ? undefined : verifyCheckpoint(kept, logKey)
  if (kept !== undefined && before === undefined) {
    return alarm('The checkpoint that was kept is not signed by the key of the log', { kept, note })
  }
  const reason =
    (before === undefined ? undefined : await faultBetween(request, before, now)) ??
    (await faultOfHeads(request, { logKey, before, now }))
  if (reason !== undefined) return alarm(reason, { kept, note })
  const newest = kept === undefined ? note : withSignaturesOf(kept, note)
  if (newest !== kept) writeDurably(request.state, newest)
  const grown = before === undefined ? 'the first one kept' : `${before.size} before`
  process.stdout.write(printableLines(`${now.origin}: ${now.size} records, ${grown}\n`))
  return exitCodes.fine
}

/** What is wrong with the present log, compared with the kept checkpoint. */
async function faultBetween(
  request: WitnessRequest,
  before: Checkpoint,
  now: Checkpoint,
): Promise<string | undefined> {
  if (now.size < before.size) return `The log was cut: it had ${before.size} records and has ${now.size}`
  if (now.size === before.size) {
    return now.rootHex === before.rootHex ? undefined : `The log was forked: other ${now.size} records`
  }
  const answer = await ask(request, `/v1/log/consistency?from=${before.size}&to=${now.size}`)
  const path = pathOf(membersOf(answer)['path'])
  const between = { from: before.size, to: now.size, fromRootHex: before.rootHex, toRootHex: now.rootHex }
  if (path !== undefined && runNow(growsFrom({ ...between, path }), jobs)) return undefined
  return `The log was forked: its ${now.size} records do not begin with the ${before.size} of before`
}

/** What is wrong with the records of the log since the kept checkpoint, or with their age. */
async function faultOfHeads(
  request: WitnessRequest,
  { logKey, before, now }: { logKey: string; before: Checkpoint | undefined; now: Checkpoint },
): Promise<string | undefined> {
  const fromSeq = before === undefined ? 0 : Math.min(before.size, now.size - 1)
  const query = `agent=${encodeURIComponent(logAgent)}&from_seq=${fromSeq}&to_seq=${now.size - 1}`
  const answer = await open(request, `/v1/strand/export?${query}`)
  if (answer.body === null) throw new AwayError('The server gave no export of its log')
  const heads = new NewHeads()
  const lines = heads.read(splitLines(streamOf(answer.body)))
  const found = await verifyExport(lines, { publicKey: logKey, strand: strandOf(now) })
  if (!found.ok) return `The log cannot be read: line ${found.line}: ${found.reason}`
  if (found.firstSeq !== fromSeq || found.lastSeq !== now.size - 1)
    return 'The log shows other records than asked for'
  if (heads.fault !== undefined) return heads.fault
  const ageSecs = Math.floor((Date.now() - heads.lastMs) / 1_000)
  const { maxAgeSecs = Infinity } = request
  return ageSecs > maxAgeSecs ? `The newest record of the log is ${ageSecs} seconds old` : undefined
}

/** Reads the records of a log as they arrive. */
class NewHeads {
  readonly #sizes = new Map<string, number>()
  fault: string | undefined
  /** When the last record was written, Unix milliseconds. */
  lastMs = 0

  async *read(lines: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const line of lines) {
      this.#take(line)
      yield line
    }
  }

  #take(line: string): void {
    const read = parseLine(line)
    const record = read !== undefined && 'record' in read ? read.record : undefined
    const header = record && parseHeader(record.h)
    if (record === undefined || header === undefined) return
    this.lastMs = Number.parseInt(header.hlc.slice(0, 12), 16)
    if (header.seq === 0) return
    const told = header.type === headsType && record.body !== undefined ? readHeads(record.body) : undefined
    if (told === undefined)
      this.fault ??= `Record ${header.seq} of the log tells of no heads, or cannot be read`
    for (const { strand, size } of told?.heads ?? []) {
      const last = this.#sizes.get(strand) ?? 0
      if (size <= last)
        this.fault ??= `Record ${header.seq} of the log tells of ${size} records of ${strand}, ${last} were told before`
      this.#sizes.set(strand, size)
    }
  }
}

async function* streamOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (cause) {
    throw new AwayError('The server hung up', { cause })
  }
}

/** The members of an answer; none when it is not a JSON object. */
function membersOf(text: string): Record<string, unknown> {
  const value = readBodyJson(text)?.value
  return isMembers(value) ? value : {}
}

/**
 * The public key of the log of a note. The note names the log's strand, which is the hash of its genesis record, and
 * that names the key, so no other key can be passed off.
 */
async function keyOfLog(request: WitnessRequest, note: string): Promise<string> {
  const agent = encodeURIComponent(logAgent)
  const genesis = await ask(request, `/v1/strand/export?agent=${agent}&to_seq=0`)
  const verified = await verifyExport(genesis.trimEnd().split('\n'))
  if (!verified.ok) throw new Error(`Expected the first record of the log: ${verified.reason}`)
  if (!note.startsWith(`${checkpointOrigin(verified.strand)}\n`)) {
    throw new Error('Expected the first record of the log that the checkpoint is of')
  }
  return verified.publicKey
}

async function ask(request: WitnessRequest, path: string): Promise<string> {
  const answer = await open(request, path)
  try {
    return await boundedText(answer, ANSWER_BYTES_MAX)
  } catch (cause) {
    // fetch throws a TypeError if an answer breaks off; for one that is too long the Error is ours.
    throw cause instanceof TypeError ? new AwayError('The server hung up', { cause }) : cause
  }
}

/** Begins a call. @throws AwayError if the server is away or busy; Error for another refusal */
async function open({ urls, key }: WitnessRequest, path: string): Promise<Response> {
  const headers = new Headers(key === undefined ? {} : { authorization: `Bearer ${key}` })
  let answer: Response
  try {
    answer = await tryEachUrl(urls, (url) => {
      const signal = AbortSignal.timeout(ANSWER_MS_MAX)
      return fetch(url + path, { headers, signal, redirect: 'error' })
    })
  } catch (cause) {
    throw new AwayError('The server is away', { cause })
  }
  if (answer.ok) return answer
  const said = `${path}: ${await refusalOf(answer).catch(() => answer.status)}`
  throw answer.status >= 500 || answer.status === 429 ? new AwayError(said) : new Error(said)
}

/** Says what is wrong and shows both notes, which together prove it. */
function alarm(reason: string, { kept, note }: { kept: string | undefined; note: string }): number {
  const notes = `kept:\n${kept ?? 'nothing\n'}\nof the server:\n${note}`
  process.stdout.write(printableLines(`NOT CONSISTENT: ${reason}\n\n${notes}`))
  return exitCodes.foundWrong
}
