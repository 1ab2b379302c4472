import { isUtf8 } from 'node:buffer'
import { memberAddress, memberOrganism } from '../auth/namespace.js'
import { authMember } from '../base/organism-id.js'
import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { ReaderPool } from '../dispatch/reader-pool.js'
import type { Shards } from '../dispatch/shards.js'
import { unexpected } from '../routes/answers.js'
import type { ImportRequest, Principal } from '../routes/route.js'
import type { AuditEntry } from '../protocol/audit-messages.js'
import type { AgentHead } from '../protocol/server-log-messages.js'
import { parseManifest } from '../proof/export-lines.js'
import { BodyQueue } from './body-queue.js'
import { readBody, refuseRest } from './body-stream.js'
import type { Exchange } from './exchange.js'
import { ImportSession } from './import-session.js'
import { IngestSplitter, LINE_FEED } from './ingest-splitter.js'
import type { OpenUploads } from './uploads.js'

/** What imports are carried out with. */
export interface ImportParts {
  shards: Shards
  readers: ReaderPool
  uploads: OpenUploads
  /** Why nothing more is taken in now; undefined while all is well. */
  refusal(): Refusal | undefined
  /** Tells the server log of a head that its looks do not find; false while that cannot be. Absent without a log. */
  tellHead?(head: AgentHead): Promise<boolean>
  /** Writes to the audit strand. @returns the seq of the record; undefined while that cannot be */
  tellAudit(entry: AuditEntry): Promise<number | undefined>
  onError(error: unknown, requestId: string): void
}

/** Bytes of the first line of an export. */
const MANIFEST_BYTES_MAX = 65_536

/** Takes exports in, part by part while they arrive: memory does not grow with the strand. */
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
    const body = new BodyQueue(exchange)
    const release = this.#parts.uploads.hold(principal, (refusal) => body.cut(refusal))
    readBody(exchange, request.gzip, body)
    new ImportStream(this.#parts, request)
      .run(body)
      .then((answer) => {
        if (answer === undefined) return
        if ('code' in answer) refuseRest(exchange, answer)
        else exchange.answer({ status: 200, body: JSON.stringify(answer) })
      })
      .catch((error: unknown) => {
        this.#parts.onError(error, exchange.requestId)
        refuseRest(exchange, refuse('internal_error', 'Expected the server to take the export in'))
      })
      .finally(release)
  }
}

/** One import: cuts the body into lines, reads the manifest and hands what follows to the session. */
class ImportStream {
  readonly #parts: ImportParts
  readonly #request: ImportRequest
  readonly #splitter = new IngestSplitter({ bytes: limits.importChunkBytes, lines: limits.importChunkLines })
  #session: ImportSession | undefined

  constructor(parts: ImportParts, request: ImportRequest) {
    this.#parts = parts
    this.#request = request
  }

  /** Takes the body, and tells the audit strand how it ended. @returns the answer; undefined when the client has gone */
  async run(body: BodyQueue): Promise<ReturnType<ImportSession['told']> | Refusal | undefined> {
    const answer = await this.#run(body)
    await this.#session?.tellEnd(answer !== undefined && 'code' in answer ? answer.code : undefined)
    return answer
  }

  async #run(body: BodyQueue): Promise<ReturnType<ImportSession['told']> | Refusal | undefined> {
    for (;;) {
      const part = await body.next()
      if ('gone' in part) return undefined
      const refusal =
        'refusal' in part ? part.refusal : await this.#push('bytes' in part ? part.bytes : undefined, body)
      if (refusal !== undefined) return this.#session?.toldOf(refusal) ?? refusal
      if ('bytes' in part) continue
      // The credential may have ended behind the last byte, and what is at its end opens the agent for writes.
      if (body.broken !== undefined && 'refusal' in body.broken) {
        return this.#session?.toldOf(body.broken.refusal) ?? body.broken.refusal
      }
      if (this.#session === undefined) return rejectedLine(1, 'The export is empty')
      const ending = await this.#session.end()
      return ending === undefined ? this.#session.told() : this.#session.toldOf(ending)
    }
  }

  /** Takes bytes, or the end of the body. */
  async #push(bytes: Buffer | undefined, body: BodyQueue): Promise<Refusal | undefined> {
    const rest = bytes === undefined ? this.#splitter.end() : undefined
    const chunks = bytes === undefined ? (rest === undefined ? [] : [rest]) : this.#splitter.push(bytes)
    if (this.#splitter.waiting > limits.importLineBytesMax + limits.importChunkBytes) return lineTooLong
    for (const chunk of chunks) {
      const ended = body.broken !== undefined && 'refusal' in body.broken ? body.broken.refusal : undefined
      const refusal = ended ?? this.#parts.refusal() ?? (await this.#take(chunk.bytes))
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  async #take(lines: Buffer): Promise<Refusal | undefined> {
    if (this.#session !== undefined) return this.#session.take(lines)
    const found = lines.indexOf(LINE_FEED)
    const end = found === -1 ? lines.length : found
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
    const forbidden = this.#request.agentRefusal(agent)
    if (forbidden !== undefined) return forbidden
    const organismId = memberOrganism(agent)
    if (organismId !== undefined) {
      const owner = memberAddress(organismId, authMember)
      const outcome = await this.#parts.shards.ask(owner, { kind: 'organismGet', agent: owner, organismId })
      if (outcome.kind !== 'organism') return unexpected(outcome)
    }
    return new ImportSession(this.#parts, { manifest, request: this.#request })
  }
}

const lineTooLong = refuse('too_large', `Expected lines of at most ${limits.importLineBytesMax} bytes`)

function rejectedLine(line: number, reason: string): Refusal {
  return refuse('import_rejected', `Line ${line}: ${reason}`, { extra: { line } })
}
