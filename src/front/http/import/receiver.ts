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
import { ImportSession, type ImportAbout, type SessionParts } from './session.js'
import { ImportStage } from './stage.js'
import type { OpenUploads } from '../../limits/uploads.js'

/** The parts that imports work with. */
export interface ImportParts extends SessionParts {
  uploads: OpenUploads
  /** The folder in which checked records wait for the end of their export. */
  stageFolder: string
  /** Why nothing more is imported now; undefined if it can be. */
  refusal(): Refusal | undefined
  onError(error: unknown, requestId: string): void
}

/** Bytes of the first line of an export. */
const MANIFEST_BYTES_MAX = 65_536

/**
 * Imports exports. Their parts are checked as they arrive, and wait in a file until the export is complete; then they
 * are committed. Memory does not grow with the strand, and nothing of an incomplete export is imported.
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
    const { uploads, onError, stageFolder } = this.#parts
    receiveBody(exchange, { principal, uploads, gzip: request.gzip, onError }, async (body, memory) => {
      const stage = new ImportStage(stageFolder)
      try {
        return await new ImportStream(this.#parts, { request, stage, memory }).run(body)
      } finally {
        stage.remove().catch((error: unknown) => onError(error, exchange.requestId))
      }
    })
  }
}

/** One import: cuts the body into lines, reads the manifest and hands what follows to the session. */
class ImportStream {
  readonly #parts: ImportParts
  readonly #about: ImportAbout
  readonly #splitter: LineSplitter
  #session: ImportSession | undefined

  constructor(parts: ImportParts, about: ImportAbout) {
    this.#parts = parts
    this.#about = about
    const chunk = { bytes: limits.importChunkBytes, lines: limits.importChunkLines }
    this.#splitter = new LineSplitter(chunk, about.memory)
  }

  /**
   * Takes the body, and records on the audit strand how the import ended. @returns the answer; undefined when the
   * client has gone
   */
  async run(body: BodyQueue): Promise<Answer | Refusal | undefined> {
    const answer = await this.#run(body)
    const isRefused = answer !== undefined && 'code' in answer
    await this.#session?.tellEnd(isRefused ? answer.code : undefined)
    return answer === undefined || isRefused ? answer : { status: 200, body: JSON.stringify(answer) }
  }

  async #run(body: BodyQueue): Promise<ReturnType<ImportSession['told']> | Refusal | undefined> {
    for (;;) {
      const part = await body.next()
      if ('gone' in part) return undefined
      const refusal =
        'refusal' in part ? part.refusal : await this.#push('bytes' in part ? part.bytes : undefined, body)
      if (refusal !== undefined) return this.#session?.toldOf(refusal) ?? refusal
      if ('bytes' in part) continue
      // The credential may have ended after the last byte, and the end of an import opens the agent for writes.
      const cut = ended(body)
      if (cut !== undefined) return this.#session?.toldOf(cut) ?? cut
      if (this.#session === undefined) return rejectedLine(1, 'The export is empty')
      const ending = await this.#session.end(() => ended(body) ?? this.#parts.refusal())
      return ending === undefined ? this.#session.told() : this.#session.toldOf(ending)
    }
  }

  /** Takes bytes, or the end of the body. */
  async #push(bytes: Buffer | undefined, body: BodyQueue): Promise<Refusal | undefined> {
    const rest = bytes === undefined ? this.#splitter.end() : undefined
    const chunks = bytes === undefined ? (rest === undefined ? [] : [rest]) : this.#splitter.push(bytes)
    if (this.#splitter.waiting > limits.importLineBytesMax + limits.importChunkBytes) return lineTooLong
    for (const chunk of chunks) {
      const { length } = chunk.bytes
      this.#about.memory.add(length)
      const refusal = ended(body) ?? this.#parts.refusal() ?? (await this.#take(chunk.bytes))
      if (refusal !== undefined) return refusal
      this.#about.memory.give(length)
    }
    return undefined
  }

  async #take(lines: Buffer): Promise<Refusal | undefined> {
    if (this.#session !== undefined) return this.#session.take(lines)
    const end = lineEnd(lines, 0)
    const session = await this.#begin(lines.subarray(0, end))
    if ('code' in session) return session
    this.#session = session
    return end + 1 < lines.length ? session.take(lines.subarray(end + 1)) : undefined
  }

  /** Reads the manifest; 403 for an agent that the caller may not import, 404 organism_not_found. */
  async #begin(line: Buffer): Promise<ImportSession | Refusal> {
    const isReadable = line.length <= MANIFEST_BYTES_MAX && isUtf8(line)
    const manifest = isReadable ? parseManifest(line.toString('utf8')) : undefined
    if (manifest === undefined) return rejectedLine(1, 'The first line is no strand-export/v1 manifest')
    const { agent } = manifest
    const forbidden = this.#about.request.agentRefusal(agent)
    if (forbidden !== undefined) return forbidden
    const organismId = memberOrganism(agent)
    if (organismId !== undefined) {
      const owner = memberAddress(organismId, authMember)
      const outcome = await this.#parts.shards.ask(owner, { kind: 'organismGet', agent: owner, organismId })
      if (outcome.kind !== 'organism') return unexpected(outcome)
    }
    return new ImportSession(this.#parts, { ...this.#about, manifest })
  }
}

/** Why a body was cut off: its credential has ended. */
function ended({ broken }: BodyQueue): Refusal | undefined {
  return broken !== undefined && 'refusal' in broken ? broken.refusal : undefined
}

const lineTooLong = refuse('too_large', `Expected lines of at most ${limits.importLineBytesMax} bytes`)

function rejectedLine(line: number, reason: string): Refusal {
  return refuse('import_rejected', `Line ${line}: ${reason}`, { extra: { line } })
}
