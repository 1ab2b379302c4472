import { readIfThere, writeDurably } from '../durable-file.js'
import { logAgent } from '../base/organism-id.js'
import { runNow } from '../proof/job.js'
import { jobs } from '../proof/node/jobs.js'
import { verifyCheckpoint } from '../proof/node/verify-checkpoint.js'
import { verifyExport } from '../proof/node/verify-export.js'
import { type Checkpoint, parseCheckpoint } from '../proof/note.js'
import { isMembers, readBodyJson } from '../proof/strict-json.js'
import { growsFrom, pathOf } from '../proof/tree-proof.js'
import { checkpointOrigin } from '../strand/checkpoint.js'
import { boundedText, errorText } from './bounded-answer.js'
import { exitCodes } from './exit-codes.js'
import { describeError, printableLines } from './printable.js'
import { readOptions, showUsage } from './read-options.js'
import { serverAsked } from './server-url.js'

const USAGE = `Usage: strandfast witness --state FILE [--url URL] [--key KEY] [--log-key HEX]
Asks a server for the checkpoint of its log of strand heads, sees that the log only grew since the checkpoint in FILE,
and keeps the new one there. The first run has nothing to compare with: it believes the server, or takes the public key
of the log. --url is that of the settings and --key SERVICE_ROOT_API_KEY unless given.
Exit codes: 0 the log only grew, 1 it was cut or forked (FILE stays as it is), or the server was not there.
`

/** Bytes of an answer that are taken; a proof has some thousand. */
const ANSWER_BYTES_MAX = 1_048_576

/** How long the server may take for one answer. */
const ANSWER_MS_MAX = 60_000

interface Asked {
  state: string
  url: string
  key: string | undefined
  logKey: string | undefined
}

/**
 * Keeps the newest checkpoint of a server's log, to be run again and again on another machine.
 * @returns the exit code: 0 the log only grew, 1 it did not or cannot be seen, 78 wrong usage
 */
export async function witnessCommand(args: string[]): Promise<number> {
  const options = readOptions(args, {
    state: { type: 'string' },
    url: { type: 'string' },
    key: { type: 'string' },
    'log-key': { type: 'string' },
  })
  if (!options.ok) return showUsage(USAGE, options)
  const asked = readAsked(options.values)
  if (typeof asked === 'string') return showUsage(USAGE, { help: false, fault: asked })
  try {
    return await witness(asked)
  } catch (error) {
    process.stderr.write(`The log could not be seen: ${describeError(error)}\n`)
    return exitCodes.foundWrong
  }
}

type Values = Partial<Record<'state' | 'url' | 'key' | 'log-key', string>>

function readAsked(values: Values): Asked | string {
  const { state } = values
  if (state === undefined) return 'Expected --state'
  const logKey = values['log-key']?.toLowerCase()
  if (logKey !== undefined && !/^[0-9a-f]{64}$/.test(logKey)) {
    return 'Expected --log-key to be a public key of 64 hex digits'
  }
  const server = serverAsked(values)
  return typeof server === 'string' ? server : { state, ...server, logKey }
}

async function witness(asked: Asked): Promise<number> {
  const kept = readIfThere(asked.state)
  const note = await ask(asked, '/v1/log/checkpoint')
  if (kept !== undefined && parseCheckpoint(kept)?.origin !== parseCheckpoint(note)?.origin) {
    return alarm('The server has another log', { kept, note })
  }
  const logKey = asked.logKey ?? (await keyOfLog(asked, note))
  const now = verifyCheckpoint(note, logKey)
  if (now === undefined) return alarm('The checkpoint is not signed by the key of the log', { kept, note })
  const before = kept === undefined ? undefined : verifyCheckpoint(kept, logKey)
  if (kept !== undefined && before === undefined) {
    return alarm('The checkpoint that was kept is not signed by the key of the log', { kept, note })
  }
  const reason = before === undefined ? undefined : await faultBetween(asked, before, now)
  if (reason !== undefined) return alarm(reason, { kept, note })
  if (note !== kept) writeDurably(asked.state, note)
  const grown = before === undefined ? 'the first one kept' : `${before.size} before`
  process.stdout.write(printableLines(`${now.origin}: ${now.size} records, ${grown}\n`))
  return exitCodes.fine
}

/** What is wrong with the log of now, by the checkpoint that was kept. */
async function faultBetween(asked: Asked, before: Checkpoint, now: Checkpoint): Promise<string | undefined> {
  if (now.size < before.size) return `The log was cut: it had ${before.size} records and has ${now.size}`
  if (now.size === before.size) {
    return now.rootHex === before.rootHex ? undefined : `The log was forked: other ${now.size} records`
  }
  const answer = await ask(asked, `/v1/log/consistency?from=${before.size}&to=${now.size}`)
  const path = pathOf(membersOf(answer)['path'])
  const between = { from: before.size, to: now.size, fromRootHex: before.rootHex, toRootHex: now.rootHex }
  if (path !== undefined && runNow(growsFrom({ ...between, path }), jobs)) return undefined
  return `The log was forked: its ${now.size} records do not begin with the ${before.size} of before`
}

/** The members of an answer; none when it is no JSON object. */
function membersOf(text: string): Record<string, unknown> {
  const value = readBodyJson(text)?.value
  return isMembers(value) ? value : {}
}

/**
 * The public key of the log that a note is of. The note names the log's strand, which is the hash of its genesis record,
 * which names the key: nothing else can be made up for it.
 */
async function keyOfLog(asked: Asked, note: string): Promise<string> {
  const agent = encodeURIComponent(logAgent)
  const genesis = await ask(asked, `/v1/strand/export?agent=${agent}&to_seq=0`)
  const verified = await verifyExport(genesis.trimEnd().split('\n'))
  if (!verified.ok) throw new Error(`Expected the first record of the log: ${verified.reason}`)
  if (!note.startsWith(`${checkpointOrigin(verified.strand)}\n`)) {
    throw new Error('Expected the first record of the log that the checkpoint is of')
  }
  return verified.publicKey
}

async function ask({ url, key }: Asked, path: string): Promise<string> {
  const headers = new Headers(key === undefined ? {} : { authorization: `Bearer ${key}` })
  const signal = AbortSignal.timeout(ANSWER_MS_MAX)
  const answer = await fetch(url + path, { headers, signal, redirect: 'error' })
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await errorText(answer)}`)
  return boundedText(answer, ANSWER_BYTES_MAX)
}

/** Says what is wrong and shows both notes, which together are the proof of it. */
function alarm(reason: string, { kept, note }: { kept: string | undefined; note: string }): number {
  const notes = `kept:\n${kept ?? 'nothing\n'}\nof the server:\n${note}`
  process.stdout.write(printableLines(`NOT CONSISTENT: ${reason}\n\n${notes}`))
  return exitCodes.foundWrong
}
