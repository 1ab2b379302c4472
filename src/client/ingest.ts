import { type Call, type Transport, pathSegment } from './http.js'
import { newIdempotencyKey } from './webcrypto.js'
import { type Bare, changeCall, dated } from './collection.js'
import { ServiceError } from './errors.js'
import type { CallOptions, ChangeOptions, IngestFault, IngestSummary, WriteResponse } from './types.js'
import { jsonText } from './json-text.js'

/** Options of ingestMany. */
export interface IngestManyOptions extends CallOptions {
  /**
   * `skip` (default) writes the valid lines; `keep` also stores each refused line as a record of type
   * `ingest/rejected`; `reject_all` writes nothing if one line is refused.
   */
  onError?: 'skip' | 'keep' | 'reject_all' | undefined
  /** `body` skips records whose body was ingested to the agent in the same way within a day. */
  dedupe?: 'body' | undefined
  /** `text` stores integers beyond ±(2^53-1) as strings of digits; by default, they are refused. */
  integers?: 'text' | undefined
  /**
   * `stream` sends one request while the source is read; `chunks` sends one request after another, each safe
   * to repeat. The default is `stream` if the platform can send streams, which browsers on HTTP/1.1 cannot;
   * but `chunks` if the client has several addresses, unless `onError` is `reject_all`, because a stream
   * cannot be sent to a second address.
   */
  upload?: 'stream' | 'chunks' | undefined
}

/** Records to ingest. */
export type RecordSource = Iterable<object> | AsyncIterable<object>

/** UTF-16 code units of one piece of an upload stream. */
const PIECE_CHARS = 65_536
/** UTF-16 code units of one chunk. */
const CHUNK_CHARS = 1_048_576
/** Maximum number of faults in a combined summary; the same limit as the server's. */
const FAULTS_MAX = 100

/** Sends one record through the ingest route, where the request body is the record's body. */
export async function ingestOne(
  transport: Transport,
  agent: string,
  record: { data: object; options: ChangeOptions },
): Promise<WriteResponse> {
  const call = changeCall(
    `/v1/ingest/${pathSegment(agent)}`,
    jsonText(record.data, 'the record'),
    record.options,
  )
  return dated(await transport.json<Bare<WriteResponse>>(call))
}

/**
 * Sends many records as NDJSON. The request of a chunk is repeated if it fails; a streamed request is not.
 */
export async function ingestMany(
  transport: Transport,
  agent: string,
  records: { source: RecordSource; options: IngestManyOptions },
): Promise<IngestSummary> {
  const { source, options } = records
  const call: Call = {
    method: 'POST',
    path: `/v1/ingest/${pathSegment(agent)}`,
    query: { on_error: options.onError, integers: options.integers, dedupe: options.dedupe },
    headers: { 'content-type': 'application/x-ndjson' },
    repeatable: false,
    signal: options.signal,
  }
  const isOneRequest = !transport.hasSeveralAddresses || options.onError === 'reject_all'
  const upload = options.upload ?? (isOneRequest && sendsStreams() ? 'stream' : 'chunks')
  if (upload === 'stream') return sendStream(transport, call, source)
  // `reject_all` is atomic within one request only, so everything is sent as one chunk, whatever its size.
  return sendChunks(
    transport,
    call,
    linesUpTo(source, options.onError === 'reject_all' ? Infinity : CHUNK_CHARS),
  )
}

async function sendStream(transport: Transport, call: Call, source: RecordSource): Promise<IngestSummary> {
  const pieces = linesUpTo(source, PIECE_CHARS)
  const encoder = new TextEncoder()
  const sourceFailure: { cause?: unknown } = {}
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = await pieces.next()
        if (next.done) controller.close()
        else controller.enqueue(encoder.encode(next.value))
      } catch (cause) {
        sourceFailure.cause = cause
        controller.error(cause)
      }
    },
    async cancel() {
      await pieces.return()
    },
  })
  try {
    return await transport.json({ ...call, body, timeoutMs: Infinity })
  } catch (error) {
    // fetch reports an error of the source as a network failure.
    throw 'cause' in sourceFailure ? sourceFailure.cause : error
  }
}

async function sendChunks(
  transport: Transport,
  call: Call,
  chunks: AsyncGenerator<string, void>,
): Promise<IngestSummary> {
  let summary: IngestSummary | undefined
  let refused: ServiceError | undefined
  let linesBefore = 0
  for await (const body of chunks) {
    const chunkCall = { ...call, body, repeatable: true, idempotencyKey: newIdempotencyKey() }
    const chunk = await transport.json<IngestSummary>(chunkCall).catch((error: unknown) => {
      // No line of this chunk was accepted, but lines of other chunks may be.
      if (!isRejected(error) || (call.query?.['on_error'] ?? 'skip') !== 'skip') throw error
      refused ??= error
      return rejectedSummary(error)
    })
    summary = summary ? combineSummaries(summary, chunk, linesBefore) : chunk
    linesBefore += chunk.accepted + chunk.rejected
  }
  if (refused !== undefined && summary?.accepted === 0) throw refused
  return summary ?? transport.json<IngestSummary>({ ...call, body: '' })
}

function isRejected(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.code === 'ingest_rejected'
}

/** The summary in the problem document of a request whose lines were all refused. */
function rejectedSummary({ problem }: ServiceError): IngestSummary {
  const { rejected, errors, rejected_by_code: byCode } = problem
  return {
    accepted: 0,
    rejected: typeof rejected === 'number' ? rejected : 0,
    ...(isCounts(byCode) && { rejected_by_code: byCode }),
    errors: Array.isArray(errors) ? errors.filter(isFault) : [],
    first_seq: null,
    last_seq: null,
    chain_head: null,
  }
}

function isCounts(value: unknown): value is Record<string, number> {
  return typeof value === 'object' && value !== null
}

function isFault(value: unknown): value is IngestFault {
  return typeof value === 'object' && value !== null && 'line' in value
}

function combineSummaries(summary: IngestSummary, chunk: IngestSummary, linesBefore: number): IngestSummary {
  const errors = chunk.errors.map((fault) => ({ ...fault, line: fault.line + linesBefore }))
  return {
    accepted: summary.accepted + chunk.accepted,
    rejected: summary.rejected + chunk.rejected,
    ...((summary.duplicates ?? chunk.duplicates) !== undefined && {
      duplicates: (summary.duplicates ?? 0) + (chunk.duplicates ?? 0),
    }),
    ...((summary.kept ?? chunk.kept) !== undefined && { kept: (summary.kept ?? 0) + (chunk.kept ?? 0) }),
    ...combineCounts(summary.rejected_by_code, chunk.rejected_by_code),
    errors: [...summary.errors, ...errors].slice(0, FAULTS_MAX),
    first_seq: summary.first_seq ?? chunk.first_seq,
    last_seq: chunk.last_seq ?? summary.last_seq,
    chain_head: chunk.chain_head ?? summary.chain_head,
  }
}

/** Adds the counts by code of two summaries; none if neither has any. */
function combineCounts(
  counts: IngestSummary['rejected_by_code'],
  more: IngestSummary['rejected_by_code'],
): Pick<IngestSummary, 'rejected_by_code'> {
  if (counts === undefined || more === undefined) {
    const only = counts ?? more
    return only === undefined ? {} : { rejected_by_code: only }
  }
  const sum = { ...counts }
  for (const [code, count] of Object.entries(more)) sum[code] = (sum[code] ?? 0) + count
  return { rejected_by_code: sum }
}

/** The source as NDJSON texts of whole lines, each about `charsMax` long. */
async function* linesUpTo(source: RecordSource, charsMax: number): AsyncGenerator<string, void> {
  let text = ''
  let count = 0
  for await (const record of source) {
    text += `${jsonText(record, `record ${++count}`)}\n`
    if (text.length < charsMax) continue
    yield text
    text = ''
  }
  if (text !== '') yield text
}

/** Browsers can send request streams over HTTP/2 only; server runtimes also over HTTP/1.1. */
function sendsStreams(): boolean {
  return !('document' in globalThis) && !('importScripts' in globalThis)
}
