import { open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { tryEachUrl, describeRequestError, isClosedPipe, refusalOf } from './server-answer.js'
import { fetchReporting } from './server-client.js'
import { command, fail, exitCodes } from './command.js'
import { printableBytes } from './printable.js'
import { type Progress, startProgress } from './progress.js'
import { type ServerTargets, SERVERS_USAGE, serverOptions, serversOf } from './server-url.js'
import { interruptible } from './stop-signals.js'
import { isLoopback } from '../base/loopback.js'
import { limits } from '../base/limits/limits.js'
import { lineEnd } from '../base/line-splitter.js'

const USAGE = `Usage: strandfast export --out FILE|- [--force] [--agent NAME] [--from-seq N] [--to-seq N]
Saves the strand of an agent as NDJSON, compressed with gzip if FILE ends in .gz; - is standard output. An existing FILE
is replaced only with --force.
--agent defaults to the server's default agent.
${SERVERS_USAGE}`

/** The trailer is searched in this many bytes at the end of an export. */
const TRAILER_BYTES_MAX = 65_536

const LINE_FEED = 10

interface SaveRequest extends ServerTargets {
  out: string
  /** Whether to replace an existing file. */
  force: boolean
  path: string
}

/**
 * Saves an export (docs/FORMAT.md, Export). The file appears only after it is complete and on disk.
 * @returns the exit code: 0 saved, 1 failed, 78 wrong usage
 */
export const exportCommand = command({
  usage: USAGE,
  options: {
    ...serverOptions,
    agent: { type: 'string' },
    out: { type: 'string' },
    force: { type: 'boolean', default: false },
    'from-seq': { type: 'string' },
    'to-seq': { type: 'string' },
  },
  read({ agent, out, force, 'from-seq': fromSeq, 'to-seq': toSeq, ...values }): SaveRequest | string {
    if (out === undefined) return 'Expected --out FILE'
    for (const [name, seq = '0'] of Object.entries({ 'from-seq': fromSeq, 'to-seq': toSeq }))
      if (!/^(0|[1-9]\d{0,14})$/.test(seq)) return `Expected --${name} to be a record number`
    const server = serversOf(values)
    const query = Object.entries({ agent, from_seq: fromSeq, to_seq: toSeq })
    const given = query.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
    const path = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
    return { out, force, path: `/v1/strand/export${path}`, ...server }
  },
  async run(request) {
    const progress = startProgress()
    try {
      const records = await interruptible((signal) => save(request, { signal, progress }))
      progress.end()
      process.stderr.write(`Saved ${records} records to ${request.out}\n`)
      return exitCodes.fine
    } catch (error) {
      progress.end()
      if (isClosedPipe(error)) return exitCodes.fine
      return fail(`The export failed: ${describeRequestError(error, request.urls)}`)
    }
  },
})

interface SaveContext {
  signal: AbortSignal
  progress: Progress
}

/** @returns how many records were saved */
async function save(request: SaveRequest, context: SaveContext): Promise<number> {
  if (request.out === '-') {
    const { source, tally } = await requestExport(request, context)
    const shown = process.stdout.isTTY ? printableBytes(source) : source
    await pipeline(shown, process.stdout, { signal: context.signal, end: false })
    return tally.records
  }
  await refuseExisting(request)
  const temporary = `${request.out}.${process.pid}.tmp`
  // The file is opened first: a stream that opens its own file could create it after a failure has removed
  // it.
  const handle = await open(temporary, 'wx')
  try {
    const { source, tally } = await requestExport(request, context)
    const write = (bytes: AsyncIterable<Uint8Array>) => writeFile(handle, bytes)
    const { signal } = context
    if (request.out.endsWith('.gz')) await pipeline(source, createGzip(), write, { signal })
    else await pipeline(source, write, { signal })
    await handle.sync()
    await refuseExisting(request)
    await rename(temporary, request.out)
    return tally.records
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

/**
 * @throws Error if the file exists and `force` is not set, or if it is not a regular file, such as a device
 */
async function refuseExisting({ out, force }: SaveRequest): Promise<void> {
  const existing = await stat(out).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  if (existing?.isFile() === false)
    throw new Error(`${out} is not a regular file (use - for standard output)`)
  if (existing !== undefined && !force) throw new Error(`${out} exists already: use --force to replace it`)
}

/** Requests the export. @returns its bytes, and a count of its records that grows as they are read */
async function requestExport(
  { urls, path, key }: SaveRequest,
  { signal, progress }: SaveContext,
): Promise<{ source: AsyncGenerator<Uint8Array>; tally: RecordCount }> {
  const reportingFetch = fetchReporting(urls)
  const response = await tryEachUrl(urls, (url) => {
    const headers = new Headers(key === undefined ? {} : { authorization: `Bearer ${key}` })
    // On one machine, compression takes longer than it saves.
    if (isLoopback(new URL(url).hostname)) headers.set('accept-encoding', 'identity')
    return reportingFetch(url + path, { headers, signal, redirect: 'error' })
  })
  if (!response.ok || response.body === null) throw new Error(await refusalOf(response))
  const tally: RecordCount = { records: 0 }
  return { source: countRecords(response.body.getReader(), { tally, progress }), tally }
}

interface RecordCount {
  /** Lines read so far except the manifest; at the end, also without the trailer. */
  records: number
}

/**
 * Yields the bytes of an export, and counts its records for the progress.
 * @throws Error as soon as the bytes cannot be an export, and at the end if the trailer is missing: a server
 * that stops truncates the response
 */
async function* countRecords(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { tally, progress }: { tally: RecordCount; progress: Progress },
): AsyncGenerator<Uint8Array> {
  const shape = new ExportShape()
  progress.show({
    doing: 'saved',
    unit: 'records',
    state: () => ({ done: tally.records, total: shape.records }),
  })
  let tail = Buffer.alloc(0)
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    shape.take(value)
    tally.records = Math.max(0, shape.lines - 1)
    tail = Buffer.concat([tail, value.subarray(-TRAILER_BYTES_MAX)]).subarray(-TRAILER_BYTES_MAX)
    yield value
  }
  const records = trailerRecords(tail)
  tally.records = Math.max(0, shape.lines - 2)
  if (records !== tally.records) throw new Error('The response ended before the end of the export')
}

/** The number of records according to the trailer; undefined if the last line is not a trailer. */
function trailerRecords(tail: Buffer): number | undefined {
  if (tail.at(-1) !== LINE_FEED) return undefined
  const line = tail.subarray(tail.lastIndexOf(LINE_FEED, -2) + 1).toString()
  try {
    const json: unknown = JSON.parse(line)
    if (typeof json !== 'object' || json === null || !('chain_head' in json && 'records' in json))
      return undefined
    return typeof json.records === 'number' ? json.records : undefined
  } catch {
    return undefined
  }
}

/** Maximum length of the first line of an export. */
const MANIFEST_BYTES_MAX = 65_536

/** Lines of an export that are not records: the manifest and the trailer. */
const OTHER_LINES = 2

/**
 * Checks the form of an export as its bytes arrive: it begins with a manifest, has no more lines than the
 * manifest says, and no line is too long. `strandfast verify` checks whether the export is valid.
 */
class ExportShape {
  lines = 0
  #lineBytes = 0
  #first = Buffer.alloc(0)
  #linesMax = Number.POSITIVE_INFINITY

  /** The number of records according to the manifest; undefined before it has arrived. */
  get records(): number | undefined {
    return Number.isFinite(this.#linesMax) ? this.#linesMax - OTHER_LINES : undefined
  }

  /** @throws Error if the bytes cannot be part of an export */
  take(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length;) {
      const end = lineEnd(bytes, from)
      this.#lineBytes += end - from
      const bytesMax = this.lines === 0 ? MANIFEST_BYTES_MAX : limits.importLineBytesMax
      if (this.#lineBytes > bytesMax || this.lines >= this.#linesMax) throw new Error(notAnExport)
      if (this.lines === 0) this.#first = Buffer.concat([this.#first, bytes.subarray(from, end)])
      if (end < bytes.length) this.#endLine()
      from = end + 1
    }
  }

  #endLine(): void {
    if (this.lines === 0) this.#linesMax = linesOf(this.#first.toString())
    this.lines++
    this.#lineBytes = 0
  }
}

const notAnExport = 'The response of the server is not an export'

/**
 * The maximum number of lines of an export with this manifest.
 * @throws Error if the text is not a manifest
 */
function linesOf(text: string): number {
  let manifest: unknown
  try {
    manifest = JSON.parse(text)
  } catch {
    throw new Error(notAnExport)
  }
  if (typeof manifest !== 'object' || manifest === null || !('format' in manifest))
    throw new Error(notAnExport)
  if (manifest.format !== 'strand-export/v1') throw new Error(notAnExport)
  const from = 'from_seq' in manifest ? manifest.from_seq : undefined
  const to = 'to_seq' in manifest ? manifest.to_seq : undefined
  if (typeof from !== 'number' || typeof to !== 'number') throw new Error(notAnExport)
  return to - from + 1 + OTHER_LINES
}
