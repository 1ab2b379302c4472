import { open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { tryEachUrl, describeTrouble, isClosedPipe, refusalOf } from './server-answer.js'
import { command, fail, exitCodes } from './command.js'
import { printableBytes } from './printable.js'
import { type Progress, startProgress } from './progress.js'
import { type ServerTargets, SERVERS_USAGE, serverOptions, serversOf } from './server-url.js'
import { interruptible } from './stop-signals.js'
import { limits } from '../base/limits/limits.js'
import { lineEnd } from '../base/line-splitter.js'

const USAGE = `Usage: strandfast export --out FILE|- [--force] [--agent NAME] [--from-seq N] [--to-seq N]
Saves the strand of an agent as NDJSON, gzipped when FILE ends in .gz; - is standard output. A FILE that is there already
is replaced only with --force.
--agent is the server's default agent unless given.
${SERVERS_USAGE}`

/** Bytes at the end of an export in which the trailer is searched. */
const TRAILER_BYTES_MAX = 65_536

const LINE_FEED = 10

interface SaveRequest extends ServerTargets {
  out: string
  /** Replaces a file that is there already. */
  force: boolean
  /** Path and query of the export. */
  path: string
}

/**
 * Saves an export (docs/FORMAT.md, Export). The file appears only when it is complete and on disk.
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
    if (out === undefined) return 'Expected --out'
    for (const [name, seq = '0'] of Object.entries({ 'from-seq': fromSeq, 'to-seq': toSeq }))
      if (!/^(0|[1-9]\d{0,14})$/.test(seq)) return `Expected a record number after --${name}`
    const server = serversOf(values)
    if (typeof server === 'string') return server
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
      process.stderr.write(`${records} records saved to ${request.out}\n`)
      return exitCodes.fine
    } catch (error) {
      progress.end()
      if (isClosedPipe(error)) return exitCodes.fine
      return fail(`The export failed: ${describeTrouble(error, request.urls)}`)
    }
  },
})

interface Saving {
  signal: AbortSignal
  progress: Progress
}

/** @returns how many records were saved */
async function save(request: SaveRequest, saving: Saving): Promise<number> {
  if (request.out === '-') {
    const { source, tally } = await ask(request, saving)
    const shown = process.stdout.isTTY ? printableBytes(source) : source
    await pipeline(shown, process.stdout, { signal: saving.signal, end: false })
    return tally.records
  }
  await refuseThere(request)
  const unfinished = `${request.out}.${process.pid}.tmp`
  // Opened before anything else can fail: a stream that opens its file may do so when the failure has removed it.
  const handle = await open(unfinished, 'wx')
  try {
    const { source, tally } = await ask(request, saving)
    const write = (bytes: AsyncIterable<Uint8Array>) => writeFile(handle, bytes)
    const { signal } = saving
    if (request.out.endsWith('.gz')) await pipeline(source, createGzip(), write, { signal })
    else await pipeline(source, write, { signal })
    await handle.sync()
    await refuseThere(request)
    await rename(unfinished, request.out)
    return tally.records
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

/** @throws Error when the file is there already and is not to be replaced, or is something else, such as a device */
async function refuseThere({ out, force }: SaveRequest): Promise<void> {
  const found = await stat(out).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  if (found?.isFile() === false) throw new Error(`${out} is not a file (standard output is -)`)
  if (found !== undefined && !force)
    throw new Error(`${out} is there already, and is replaced only with --force`)
}

/** Asks for the export. @returns its bytes, and what was counted of them */
async function ask(
  { urls, path, key }: SaveRequest,
  { signal, progress }: Saving,
): Promise<{ source: AsyncGenerator<Uint8Array>; tally: RecordCount }> {
  const headers = new Headers(key === undefined ? {} : { authorization: `Bearer ${key}` })
  const answer = await tryEachUrl(urls, (url) => fetch(url + path, { headers, signal, redirect: 'error' }))
  if (!answer.ok || answer.body === null) throw new Error(await refusalOf(answer))
  const tally: RecordCount = { records: 0 }
  return { source: counted(answer.body.getReader(), { tally, progress }), tally }
}

interface RecordCount {
  /** Lines so far without the manifest; at the end, without the trailer too. */
  records: number
}

/**
 * Passes an export on, counting its records for the progress.
 * @throws Error as soon as it cannot be an export, and at the end if the trailer is missing, since a server that stops
 * cuts the answer off
 */
async function* counted(
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
  if (records !== tally.records) throw new Error('The answer ended before the end of the export')
}

/** The number of records that the trailer names; undefined when the last line is not a trailer. */
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

/** Bytes of the first line of an export. */
const MANIFEST_BYTES_MAX = 65_536

/** The lines of an export besides its records: the manifest and the trailer. */
const LINES_BESIDE = 2

/**
 * Checks that bytes from a server have the form of an export, as they arrive: they begin with a manifest, have no more
 * lines than it says, and no line is too long. `strandfast verify` checks whether the export is valid.
 */
class ExportShape {
  /** Complete lines. */
  lines = 0
  #lineBytes = 0
  #first = Buffer.alloc(0)
  #linesMax = Number.POSITIVE_INFINITY

  /** Records that the manifest names; undefined before it has arrived. */
  get records(): number | undefined {
    return Number.isFinite(this.#linesMax) ? this.#linesMax - LINES_BESIDE : undefined
  }

  /** @throws Error when they cannot be part of an export */
  take(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length;) {
      const end = lineEnd(bytes, from)
      this.#lineBytes += end - from
      const bytesMax = this.lines === 0 ? MANIFEST_BYTES_MAX : limits.importLineBytesMax
      if (this.#lineBytes > bytesMax || this.lines >= this.#linesMax) throw new Error(noExport)
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

const noExport = 'The server answers something that is no export'

/** The most lines of an export with this manifest. @throws Error when it is not a manifest */
function linesOf(text: string): number {
  let manifest: unknown
  try {
    manifest = JSON.parse(text)
  } catch {
    throw new Error(noExport)
  }
  if (typeof manifest !== 'object' || manifest === null || !('format' in manifest)) throw new Error(noExport)
  if (manifest.format !== 'strand-export/v1') throw new Error(noExport)
  const from = 'from_seq' in manifest ? manifest.from_seq : undefined
  const to = 'to_seq' in manifest ? manifest.to_seq : undefined
  if (typeof from !== 'number' || typeof to !== 'number') throw new Error(noExport)
  return to - from + 1 + LINES_BESIDE
}
