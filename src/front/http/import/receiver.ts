import { isUtf8 } from 'node:buffer'
import { memberAddress, memberOrganism } from '../../../auth/namespace.js'
import { authMember } from '../../../strand/organism-id.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { lineEnd, LineSplitter } from '../../../base/line-splitter.js'
import { unexpected } from '../../routes/answers.js'
import type { Answer, ImportRequest, Principal } from '../../routes/route.js'
import { parseManifest } from '../../../proof/export-lines.js'
import { type BodyQueue, receiveBody } from '../body-queue.js'
import type { Exchange } from '../exchange.js'
import { ImportSession, type ImportSource, type SessionParts } from './session.js'
import { ImportStage } from './stage.js'
import type { OpenTransfers } from '../../limits/transfers.js'

export interface ImportParts extends SessionParts {
  transfers: OpenTransfers
  /** The directory of the stage files. */
  stageFolder: string
  /** Why imports are refused now; undefined if they are accepted. */
  refusal(): Refusal | undefined
  onError(error: unknown, requestId: string): void
}

/** The most bytes of the first line of an export. */
const MANIFEST_BYTES_MAX = 65_536

/**
 * Imports exports. Their parts are checked as they arrive and stored in a stage file until the export is
 * complete; then they are committed. Memory does not grow with the strand, and nothing of an incomplete
 * export is imported.
 */
export class ImportReceiver {
  readonly #parts: ImportParts

  constructor(parts: ImportParts) {
    this.#parts = parts
  }

  receive(exchange: Exchange, request: ImportRequest | Refusal, principal: Principal): void {
    if ('code' in request) {
      exchange.refuse(request)
      return
    }
    const { transfers, onError, stageFolder } = this.#parts
    receiveBody(exchange, { principal, transfers, gzip: request.gzip, onError }, async (body, memory) => {
      const stage = new ImportStage(stageFolder)
      try {
        return await new ImportStream(this.#parts, { request, stage, memory }).run(body)
      } finally {
        stage.remove().catch((error: unknown) => onError(error, exchange.requestId))
      }
    })
  }
}

/** One import: splits the body into lines, reads the manifest, and passes the other lines to the session. */
class ImportStream {
  readonly #parts: ImportParts
  readonly #source: ImportSource
  readonly #splitter: LineSplitter
  #session: ImportSession | undefined

  constructor(parts: ImportParts, source: ImportSource) {
    this.#parts = parts
    this.#source = source
    const chunk = { bytes: limits.importChunkBytes, lines: limits.importChunkLines }
    this.#splitter = new LineSplitter(chunk, source.memory)
  }

  /**
   * Reads and imports the body, and records the end of the import on the audit strand. @returns the answer;
   * undefined if the client has disconnected
   */
  async run(body: BodyQueue): Promise<Answer | Refusal | undefined> {
    const answer = await this.#importBody(body)
    const isRefused = answer !== undefined && 'code' in answer
    await this.#session?.recordEnd(isRefused ? answer.code : undefined)
    return answer === undefined || isRefused ? answer : { status: 200, body: JSON.stringify(answer) }
  }

  async #importBody(body: BodyQueue): Promise<ReturnType<ImportSession['result']> | Refusal | undefined> {
    for (;;) {
      const part = await body.next()
      if ('gone' in part) return undefined
      const refusal =
        'refusal' in part ? part.refusal : await this.#push('bytes' in part ? part.bytes : undefined, body)
      if (refusal !== undefined) return this.#session?.withCounts(refusal) ?? refusal
      if ('bytes' in part) continue
      // The credential may have become invalid after the last byte, and the end of an import opens the agent
      // for writes.
      const cancelled = cancelRefusal(body)
      if (cancelled !== undefined) return this.#session?.withCounts(cancelled) ?? cancelled
      if (this.#session === undefined) return rejectedLine(1, 'The export is empty')
      const endRefusal = await this.#session.end(() => cancelRefusal(body) ?? this.#parts.refusal())
      return endRefusal === undefined ? this.#session.result() : this.#session.withCounts(endRefusal)
    }
  }

  /** Splits bytes, or the end of the body, into lines and imports them. */
  async #push(bytes: Buffer | undefined, body: BodyQueue): Promise<Refusal | undefined> {
    const rest = bytes === undefined ? this.#splitter.end() : undefined
    const chunks = bytes === undefined ? (rest === undefined ? [] : [rest]) : this.#splitter.push(bytes)
    if (this.#splitter.bufferedBytes > limits.importLineBytesMax + limits.importChunkBytes) return lineTooLong
    for (const chunk of chunks) {
      const { length } = chunk.bytes
      this.#source.memory.reserve(length)
      const refusal = cancelRefusal(body) ?? this.#parts.refusal() ?? (await this.#importLines(chunk.bytes))
      if (refusal !== undefined) return refusal
      this.#source.memory.release(length)
    }
    return undefined
  }

  async #importLines(lines: Buffer): Promise<Refusal | undefined> {
    if (this.#session !== undefined) return this.#session.importLines(lines)
    const end = lineEnd(lines, 0)
    const session = await this.#begin(lines.subarray(0, end))
    if ('code' in session) return session
    this.#session = session
    return end + 1 < lines.length ? session.importLines(lines.subarray(end + 1)) : undefined
  }

  /**
   * Reads the manifest and starts the session; 403 for an agent that the caller may not import, 404
   * organism_not_found.
   */
  async #begin(line: Buffer): Promise<ImportSession | Refusal> {
    const isReadable = line.length <= MANIFEST_BYTES_MAX && isUtf8(line)
    const manifest = isReadable ? parseManifest(line.toString('utf8')) : undefined
    if (manifest === undefined) return rejectedLine(1, 'The first line is no strand-export/v1 manifest')
    const { agent } = manifest
    const forbidden = this.#source.request.agentRefusal(agent)
    if (forbidden !== undefined) return forbidden
    const organismId = memberOrganism(agent)
    if (organismId !== undefined) {
      const member = memberAddress(organismId, authMember)
      const command = { kind: 'organismGet', agent: member, organismId } as const
      const outcome = await this.#parts.shards.request(member, command)
      if (outcome.kind !== 'organism') return unexpected(outcome)
    }
    return new ImportSession(this.#parts, { ...this.#source, manifest })
  }
}

/** Why a body was cancelled, for example because its credential became invalid. */
function cancelRefusal({ interruption: broken }: BodyQueue): Refusal | undefined {
  return broken !== undefined && 'refusal' in broken ? broken.refusal : undefined
}

const lineTooLong = refuse('too_large', `Expected lines of at most ${limits.importLineBytesMax} bytes`)

function rejectedLine(line: number, reason: string): Refusal {
  return refuse('import_rejected', `Line ${line}: ${reason}`, { extra: { line } })
}
