import { createReadStream, statSync } from 'node:fs'
import { limits } from '../base/limits/limits.js'
import { isFileSystemError } from '../base/durable-file.js'
import { readBounded } from '../base/bounded-file.js'
import { parseManifest } from '../proof/export-lines.js'
import type { Manifest } from '../strand/strand-export.js'
import { boundedText, errorText, describeRefusal, describeTrouble, readRefusal } from './server-answer.js'
import { command, fail, exitCodes } from './command.js'
import { printable } from './printable.js'
import { type Progress, startProgress } from './progress.js'
import { SERVER_USAGE, serverOf, serverOptions } from './server-url.js'
import { splitLines } from './split-lines.js'
import { interruptible } from './stop-signals.js'
import { isGzip, unpacked } from './unpacked.js'

const USAGE = `Usage: strandfast import FILE [FILE...] [--seed-file FILE] [--hold]
Has the running server take exports in, each checked record by record; FILE may be gzipped. What is there already
is passed over, so an import that was cut off is done again. Files of one strand are given in their order.
--seed-file holds the seed (64 hex digits) of the agent's key, where the server cannot derive it. --hold keeps the agents
from taking writes afterwards: more of their strands is to come.
${SERVER_USAGE}`

/** Bytes of an answer. */
const ANSWER_BYTES_MAX = 65_536

interface SendRequest {
  files: string[]
  url: string
  key: string | undefined
  seed: string | undefined
  hold: boolean
}

/** A file that is to be sent. */
interface Source {
  file: string
  manifest: Manifest
  /** A later file has more of its strand. */
  hold: boolean
}

/**
 * Sends exports to a server, which imports them (docs/OPERATIONS.md, Taking exports back in). The first that it refuses
 * ends the command.
 * @returns the exit code: 0 all are imported, 1 one is not, 66 a file cannot be read, 78 wrong usage
 */
export const importCommand = command({
  usage: USAGE,
  options: { ...serverOptions, 'seed-file': { type: 'string' }, hold: { type: 'boolean', default: false } },
  operands: true,
  read({ 'seed-file': seedFile, hold, ...values }, files): SendRequest | string {
    if (files.length === 0) return 'Expected one FILE at least'
    const server = serverOf(values)
    if (typeof server === 'string') return server
    const seed = seedFile === undefined ? undefined : readBounded(seedFile, limits.smallFileBytesMax)
    const seedHex = seed?.toString('utf8').trim()
    if (seedHex !== undefined && !/^[0-9a-f]{64}$/i.test(seedHex))
      return 'Expected --seed-file to hold a seed of 64 hex digits'
    return { files, url: `${server.url}/v1/strand/import`, key: server.key, seed: seedHex, hold }
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
    return fail(`${file} was not imported: ${describeTrouble(error, request.url)}`, exitCode)
  }
}

/** @throws Error for a file that cannot be read or does not begin with a manifest; then nothing is sent */
async function readSources({ files, hold }: SendRequest): Promise<Source[]> {
  const found: Pick<Source, 'file' | 'manifest'>[] = []
  for (const file of files) found.push({ file, manifest: await readManifest(file) })
  return found.map(({ file, manifest }, place) => {
    const more = found.slice(place + 1).some((later) => later.manifest.strand === manifest.strand)
    return { file, manifest, hold: hold || more }
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
    throw new Error(`${file} does not begin with a manifest of an export`)
  } finally {
    raw.destroy()
  }
}

/** Sends a file. @returns the result in words. @throws Error when the server refuses it */
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
  const answer = await fetch(hold ? `${url}?hold=true` : url, request)
  if (!answer.ok) throw new Error(refusal(answer.status, await errorText(answer)))
  return describe(await boundedText(answer, ANSWER_BYTES_MAX))
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

/** The bytes of a file, which are counted for the progress: a slow server makes them wait. */
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
  const answer: unknown = JSON.parse(text)
  const {
    agent_id: agent,
    imported,
    skipped,
    record_count: count,
    chain_head: head,
    open,
  } = membersOf(answer)
  const state = open === true ? '' : '; it takes no writes yet'
  return `IMPORTED ${imported} records of ${agent}, ${skipped} were there: ${count} now, chain head ${head}${state}`
}

/** Why the server refused a file, and how much of it is in. */
function refusal(status: number, text: string): string {
  const { imported, ...said } = readRefusal(status, text)
  const before = typeof imported === 'number' && imported > 0 ? ` (${imported} records before are in)` : ''
  return `${describeRefusal(said)}${before}`
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
