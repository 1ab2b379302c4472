import { limits } from '../base/limits/limits.js'
import { ServiceError } from '../client/errors.js'
import type { CollectionHandle } from '../client/collection.js'
import type { BatchItem } from '../client/types.js'
import { isMembers } from '../proof/strict-json.js'
import { readJson } from '../strand/json.js'
import { command, exitCodes } from './command.js'
import { printable } from './printable.js'
import { describeRequestError } from './server-answer.js'
import { clientOf } from './server-client.js'
import { type ServerTargets, SERVERS_USAGE, serverOptions, serversOf } from './server-url.js'
import { streamLines, type NumberedLine } from './split-lines.js'
import { unpacked } from './unpacked.js'

const USAGE = `Usage: strandfast write NAME [--data JSON] [--type TYPE] [--json]
Writes records to NAME: the JSON objects on standard input, one per line (may be gzipped), or the one of --data. NAME is an
agent or a collection; the first write creates a collection. Refused lines are reported, and the others are written.
--type is the type of the records. --json prints one line of JSON for each line instead of a summary: the record, or the
error of a refused line.
${SERVERS_USAGE}`

/** Maximum number of records of one batch. */
const BATCH_RECORDS_MAX = 1_000

/** Maximum size of the lines in one batch; the batch itself is a little larger. */
const BATCH_LINES_BYTES_MAX = limits.batchBytesMax / 4

/** Statuses with which the server refuses a batch because of its content. */
const contentRefusals = new Set([400, 413, 422])

type Body = Record<string, unknown>

interface WriteRequest extends ServerTargets {
  name: string
  data: string | undefined
  type: string | undefined
  json: boolean
}

/** The body of a record, with the number and length of its line. */
interface Item {
  number: number
  body: Body
  bytes: number
}

interface WriteTally {
  written: number
  refused: number
  firstSeq?: number
  lastSeq?: number
  head?: string
}

/**
 * Writes records from standard input (docs/OPERATIONS.md, Command line).
 * @returns the exit code: 0 all written, 1 at least one not written, 78 wrong usage
 */
export const writeCommand = command({
  usage: USAGE,
  options: {
    ...serverOptions,
    data: { type: 'string' },
    type: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
  operands: true,
  read({ data, type, json, ...values }, [name, ...more]): WriteRequest | string {
    if (name === undefined || more.length > 0) return 'Expected one NAME'
    return { name, data, type, json, ...serversOf(values) }
  },
  run: writeAll,
})

async function writeAll(request: WriteRequest): Promise<number> {
  const { name, data, urls } = request
  const tally: WriteTally = { written: 0, refused: 0 }
  try {
    const client = clientOf(request)
    // A name with :: belongs to an agent of an organism; a write does not create such agents.
    const strand = name.includes('::') ? client.agent<Body>(name) : client.collection<Body>(name)
    if (data === undefined && process.stdin.isTTY) {
      process.stderr.write('Enter one JSON object per line; Ctrl-D ends the input\n')
    }
    const input = data === undefined ? unpacked(process.stdin) : [Buffer.from(data)]
    for await (const lines of streamLines(input)) await writeLines(strand, { lines, request, tally })
  } catch (error) {
    process.stderr.write(`Stopped: ${describeRequestError(error, urls)}\n`)
    report(request, tally)
    return exitCodes.foundWrong
  }
  report(request, tally)
  return tally.refused === 0 ? exitCodes.fine : exitCodes.foundWrong
}

/** Writes lines that arrived together, in as few batches as the limits allow. */
async function writeLines(
  strand: CollectionHandle<Body>,
  { lines, request, tally }: { lines: NumberedLine[]; request: WriteRequest; tally: WriteTally },
): Promise<void> {
  let batch: Item[] = []
  let bytes = 0
  const send = async () => {
    if (batch.length === 0) return
    await writeBatch(strand, { items: batch, request, tally })
    batch = []
    bytes = 0
  }
  for (const line of lines) {
    const item = itemOf(line)
    if (typeof item === 'string')
      refuse({ line: line.number, code: 'validation_failed', detail: item }, { request, tally })
    else {
      if (batch.length === BATCH_RECORDS_MAX || bytes + item.bytes > BATCH_LINES_BYTES_MAX) await send()
      batch.push(item)
      bytes += item.bytes
    }
  }
  await send()
}

/**
 * Writes a batch. If the server refuses it as a whole, because a record is too large for example, writes its
 * two halves.
 */
async function writeBatch(
  strand: CollectionHandle<Body>,
  { items, request, tally }: { items: Item[]; request: WriteRequest; tally: WriteTally },
): Promise<void> {
  const [first] = items
  if (first === undefined) return
  const bodies = items.map(({ body }) => body)
  try {
    const results = await strand.writeBatch(bodies, { atomic: false, type: request.type })
    results.forEach((result, index) => countResult(result, items[index]?.number ?? 0, { request, tally }))
  } catch (error) {
    if (!(error instanceof ServiceError) || !contentRefusals.has(error.status)) throw error
    if (items.length === 1) {
      refuse({ line: first.number, code: error.code, detail: error.message }, { request, tally })
      return
    }
    const half = Math.ceil(items.length / 2)
    await writeBatch(strand, { items: items.slice(0, half), request, tally })
    await writeBatch(strand, { items: items.slice(half), request, tally })
  }
}

/**
 * Parses a line as strictly as the server parses records, because the server gets a new text.
 * @returns a text that says what is wrong
 */
function itemOf({ number, bytes }: NumberedLine): Item | string {
  const read = readJson(bytes, limits.nestingDepthMax)
  if ('code' in read) return read.detail
  if (!isMembers(read.value) || Array.isArray(read.value)) return 'Expected a JSON object'
  return { number, body: read.value, bytes: bytes.length }
}

function countResult(
  result: BatchItem,
  line: number,
  { request, tally }: { request: WriteRequest; tally: WriteTally },
): void {
  if ('error' in result) {
    refuse({ line, ...result.error }, { request, tally })
    return
  }
  if (request.json) process.stdout.write(`${JSON.stringify({ ...result, timestamp: undefined })}\n`)
  tally.written++
  tally.firstSeq ??= result.seq
  tally.lastSeq = result.seq
  tally.head = result.content_hash
}

function refuse(
  { line, code, detail }: { line: number; code: string; detail: string },
  { request, tally }: { request: WriteRequest; tally: WriteTally },
): void {
  tally.refused++
  if (request.json) process.stdout.write(`${JSON.stringify({ line, error: { code, detail } })}\n`)
  process.stderr.write(printable(`Line ${line} was not written: ${detail} (${code})`) + '\n')
}

function report(
  { name, json }: WriteRequest,
  { written, refused, firstSeq, lastSeq, head }: WriteTally,
): void {
  const seqs = firstSeq === lastSeq ? `${lastSeq}` : `${firstSeq} to ${lastSeq}`
  const range = head === undefined ? '' : ` (seq ${seqs}, chain head ${head})`
  const refusedText = refused === 0 ? '' : `, refused ${refused}`
  const line = printable(
    `Wrote ${written} ${written === 1 ? 'record' : 'records'} to ${name}${range}${refusedText}`,
  )
  ;(json ? process.stderr : process.stdout).write(`${line}\n`)
}
