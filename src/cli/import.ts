import { createReadStream, statSync } from 'node:fs'
import { limits } from '../base/limits/limits.js'
import { isFileSystemError } from '../base/durable-file.js'
import { readBounded } from '../base/bounded-file.js'
import { parseManifest } from '../proof/export-lines.js'
import type { Manifest } from '../strand/strand-export.js'
import {
  boundedText,
  errorText,
  describeRefusal,
  describeRequestError,
  readRefusal,
} from './server-answer.js'
import { command, fail, exitCodes } from './command.js'
import { printable } from './printable.js'
import { type Progress, startProgress } from './progress.js'
import { SERVER_USAGE, serverOf, serverOptions } from './server-url.js'
import { splitLines } from './split-lines.js'
import { interruptible } from './stop-signals.js'
import { isGzip, unpacked } from './unpacked.js'

const USAGE = `Usage: strandfast import FILE [FILE...] [--seed-file FILE] [--hold]
Sends exports to the running server, which checks and imports each record; FILE may be gzipped. Records that exist already are
skipped, so an interrupted import can be repeated. Give several files of one strand in their order.
--seed-file holds the seed (64 hex digits) of the agent's key, if the server cannot derive it. With --hold, the agents do not accept
writes after the import: use it if later files of their strands follow.
${SERVER_USAGE}`

/** Maximum length of a response. */
const RESPONSE_BYTES_MAX = 65_536

interface SendRequest {
  files: string[]
  url: string
  key: string | undefined
  seed: string | undefined
  hold: boolean
}

interface Source {
  file: string
  manifest: Manifest
  /** Whether the agent accepts no writes after this file, because a later file continues its strand. */
  hold: boolean
}

/**
 * Sends exports to a server, which imports them (docs/BACKUPS.md). Stops at the first export that the server
 * refuses.
 * @returns the exit code: 0 all imported, 1 one was not imported, 66 a file cannot be read, 78 wrong usage
 */
export const importCommand = command({
  usage: USAGE,
  options: { ...serverOptions, 'seed-file': { type: 'string' }, hold: { type: 'boolean', default: false } },
  operands: true,
  read({ 'seed-file': seedFile, hold, ...values }, files): SendRequest | string {
    if (files.length === 0) return 'Expected at least one FILE'
    const seed = seedFile === undefined ? undefined : readBounded(seedFile, limits.smallFileBytesMax)
    const seedHex = seed?.toString('utf8').trim()
    if (seedHex !== undefined && !/^[0-9a-f]{64}$/i.test(seedHex))
      return 'Expected --seed-file to hold a seed of 64 hex digits'
    const { url, key } = serverOf(values)
    return { files, url: `${url}/v1/strand/import`, key, seed: seedHex, hold }
  },
  run: (request) => interruptible((signal) => sendAll(request, signal)),
})

async function sendAll(request: SendRequest, signal: AbortSignal): Promise<number> {
  let file = request.files[0] ?? ''
  let progress: Progress | undefined
  try {
    for (const source of await readSources(request)) {
      file = source.file
      progress = startProgress()
      const result = await send(source, request, { signal, progress })
      progress.end()
      process.stdout.write(`${printable(result)}\n`)
    }
    return exitCodes.fine
  } catch (error) {
    progress?.end()
    const exitCode = isFileSystemError(error) ? exitCodes.noInput : exitCodes.foundWrong
    return fail(`${file} was not imported: ${describeRequestError(error, request.url)}`, exitCode)
  }
}

/**
 * Reads the manifests of all files before anything is sent.
 * @throws Error if a file cannot be read, or has no manifest
 */
async function readSources({ files, hold }: SendRequest): Promise<Source[]> {
  const sources: Pick<Source, 'file' | 'manifest'>[] = []
  for (const file of files) sources.push({ file, manifest: await readManifest(file) })
  return sources.map(({ file, manifest }, index) => {
    const isContinued = sources.slice(index + 1).some((later) => later.manifest.strand === manifest.strand)
    return { file, manifest, hold: hold || isContinued }
  })
}

async function readManifest(file: string): Promise<Manifest> {
  const raw = createReadStream(file)
  try {
    for await (const line of splitLines(unpacked(raw))) {
      const manifest = parseManifest(line)
      if (manifest === undefined) break
      return manifest
    }
    throw new Error(`${file} does not begin with the manifest of an export`)
  } finally {
    raw.destroy()
  }
}

/** Sends a file. @returns a line about the result. @throws Error if the server refuses the file */
async function send(
  source: Source,
  { url, key, seed }: SendRequest,
  { signal, progress }: { signal: AbortSignal; progress: Progress },
): Promise<string> {
  const { file, hold, manifest } = source
  const headers = new Headers({ 'content-type': 'application/x-ndjson' })
  if (key !== undefined) headers.set('authorization', `Bearer ${key}`)
  if (seed !== undefined) headers.set('strandfast-agent-seed', seed)
  if (await isGzip(file)) headers.set('content-encoding', 'gzip')
  const body = streamOf(withProgress(file, { agent: manifest.agent, progress }))
  const request = { method: 'POST', headers, body, duplex: 'half', signal, redirect: 'error' } as const
  const response = await fetch(hold ? `${url}?hold=true` : url, request)
  if (!response.ok) throw new Error(refusal(response.status, await errorText(response)))
  return describe(await boundedText(response, RESPONSE_BYTES_MAX))
}

function streamOf(source: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await source.next()
      if (done === true) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await source.return(undefined)
    },
  })
}

/** Reads a file as fast as the server takes its bytes, and shows the progress. */
async function* withProgress(
  file: string,
  { agent, progress }: { agent: string; progress: Progress },
): AsyncGenerator<Buffer> {
  const total = statSync(file).size
  let sent = 0
  progress.show({ doing: `${agent}: sent`, unit: 'bytes', state: () => ({ done: sent, total }) })
  for await (const bytes of createReadStream(file, { highWaterMark: 262_144 })) {
    yield bytes
    sent += bytes.length
  }
}

function describe(text: string): string {
  const result: unknown = JSON.parse(text)
  const {
    agent_id: agent,
    imported,
    skipped,
    record_count: count,
    chain_head: head,
    open,
  } = membersOf(result)
  const state = open === true ? '' : '; the agent does not accept writes yet'
  return `Imported ${imported} records of ${agent}, skipped ${skipped}; record count ${count}, chain head ${head}${state}`
}

/** Why the server refused a file, and how many of its records were imported before. */
function refusal(status: number, text: string): string {
  const { imported, ...problem } = readRefusal(status, text)
  const before =
    typeof imported === 'number' && imported > 0 ? ` (${imported} records before it were imported)` : ''
  return `${describeRefusal(problem)}${before}`
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
