import { RefusedError, refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { readsBy, type Read, type Readers } from '../../protocol/reader-tasks.js'
import type { Shards } from '../../dispatch/links/shards.js'
import type { LocatedOutcome } from '../../protocol/agent-messages.js'
import { answerOf, unexpected } from '../routes/answers.js'
import type { ExportRequest, Principal } from '../routes/route.js'
import { manifestLine, trailerLine } from '../../strand/strand-export.js'
import { codingHeaders, codingOf, StreamCoder } from './content-coding.js'
import { tooManyUnreadBytes } from '../limits/bounds.js'
import type { Exchange } from './exchange.js'
import { locateCommand, copyGrantText } from './streams/grants.js'
import type { OpenTransfers } from '../limits/transfers.js'

/** Sends exports page by page at the client's pace, so that memory does not grow with the strand. */
export class ExportSender {
  readonly #shards: Shards
  readonly #readers: Readers
  readonly #transfers: OpenTransfers
  readonly #onError: (error: unknown, requestId: string) => void
  /** Number of exports that are being compressed. */
  #codedCount = 0

  constructor(parts: {
    shards: Shards
    readers: Readers
    transfers: OpenTransfers
    onError: (error: unknown, requestId: string) => void
  }) {
    this.#shards = parts.shards
    this.#readers = parts.readers
    this.#transfers = parts.transfers
    this.#onError = parts.onError
  }

  /**
   * Sends an export. It ends when the credential becomes invalid or, for users, when row policies of the
   * agent change: with a refusal if nothing was sent yet, otherwise by closing the connection.
   */
  send(exchange: Exchange, request: ExportRequest | Refusal, principal: Principal): void {
    if ('code' in request) {
      exchange.refuse(request)
      return
    }
    // One page is always unread, and the grants of a user stay in memory until the end.
    const reservedBytes = limits.exportPageBytes + (request.access === undefined ? 0 : limits.grantBytesMax)
    if (!exchange.reserveBytes(reservedBytes)) {
      exchange.refuse(tooManyUnreadBytes)
      return
    }
    const end = (refusal: Refusal) => {
      if (exchange.begun) exchange.abort()
      else exchange.refuse(refusal)
    }
    const agents = new Set(principal.user === undefined ? [] : [request.agent])
    const transfer = this.#transfers.begin({ principal, holder: exchange.holder, agents }, end)
    this.#send(exchange, request, principal.id)
      .catch((error: unknown) => {
        if (error instanceof RefusedError && !exchange.begun) {
          exchange.refuse(error.refusal)
          return
        }
        // A refusal is not an error of this server, for example if another node has taken over the shard.
        if (!(error instanceof RefusedError)) this.#onError(error, exchange.requestId)
        // In the middle of an answer, only closing the connection shows that it is incomplete.
        exchange.abort()
      })
      .finally(() => {
        transfer.finish()
        exchange.releaseBytes(reservedBytes)
      })
  }

  /** @param caller id of the principal */
  async #send(exchange: Exchange, request: ExportRequest, caller: string): Promise<void> {
    const { agent, fromSeq } = request
    const located = await this.#shards.request(agent, locateCommand(agent, caller, request))
    if (located.kind !== 'located') {
      exchange.refuse(unexpected(located))
      return
    }
    if (fromSeq > located.headSeq) {
      exchange.refuse(
        refuse('validation_failed', `Expected from_seq to be at most the head's, ${located.headSeq}`),
      )
      return
    }
    const read = readsBy(this.#readers, caller)
    const toSeq = await this.#lastSeq(located, request, read)
    const coding =
      this.#codedCount < limits.exportCompressionsMax ? codingOf(request.acceptEncoding) : undefined
    exchange.begin(200, 'application/x-ndjson', [
      ['Content-Disposition', `attachment; filename="${agent.replaceAll(':', '-')}.ndjson"`],
      ...codingHeaders(coding),
    ])
    if (!exchange.open) return
    if (coding === undefined) return this.#body(exchange, { request, caller, read, located, toSeq })
    const coder = new StreamCoder(coding)
    this.#codedCount += 1
    try {
      await this.#body(exchange, { request, caller, read, located, toSeq, coder })
    } finally {
      this.#codedCount -= 1
      coder.close()
    }
  }

  /** Sends the manifest, the records and the trailer. */
  async #body(exchange: Exchange, body: ExportBody): Promise<void> {
    const { request, caller, located, toSeq, coder } = body
    const { agent, fromSeq } = request
    const send = paceOf(exchange)
    const pace: PacedWrite = coder === undefined ? send : async (part) => send(await coder.add(part))
    const { strand, headSeq } = located
    const publicKey = keyAt(located, fromSeq)
    const manifest = { agent, strand, publicKey, fromSeq, toSeq, recordCount: headSeq }
    await pace(`${manifestLine(manifest)}\n`)
    const chainHead = await this.#pages(exchange, { ...body, pace })
    const checkpoint = await this.#checkpoint(body)
    // A sys/erase after the end of the export may have erased exported records: the new record count shows
    // that.
    const current = await this.#shards.request(agent, locateCommand(agent, caller, request))
    const countAtEnd = current.kind === 'located' ? { recordCount: current.headSeq } : {}
    const trailer = `${trailerLine({ chainHead, records: toSeq - fromSeq + 1, checkpoint, ...countAtEnd })}\n`
    exchange.end(200, coder === undefined ? trailer : await coder.end(trailer))
  }

  /**
   * An export ends with a signed record: if its last record is sealed, records up to the sealing one are
   * added. The reader is called even if the export ends at the head, because an error can still be answered
   * now.
   */
  async #lastSeq(
    { shard, agentNo, headSeq }: LocatedOutcome,
    request: ExportRequest,
    read: Read,
  ): Promise<number> {
    const seq = Math.min(request.toSeq ?? headSeq, headSeq)
    return read('sealEnd', { shard, agentNo, seq })
  }

  /** @returns the hash of the last record */
  async #pages(
    exchange: Exchange,
    { request, read, located, toSeq, pace }: ExportBody & { pace: PacedWrite },
  ): Promise<string> {
    const { shard, agentNo, strand, publicKey, retiredKeys, readable } = located
    const task = {
      shard,
      agentNo,
      strand,
      publicKeys: [...retiredKeys.map((key) => key.publicKey), publicKey],
      toSeq,
      bytesMax: limits.exportPageBytes,
      ...(readable !== undefined && { readable: copyGrantText(readable) }),
    }
    let { fromSeq } = request
    let lastHash = ''
    while (fromSeq <= toSeq && exchange.open) {
      const page = await read('exportPage', { ...task, fromSeq })
      if (page.nextSeq === fromSeq)
        throw new Error(`Expected the strand to reach seq ${toSeq}, got ${fromSeq}`)
      fromSeq = page.nextSeq
      lastHash = page.lastHash
      await pace(page.bytes)
    }
    return lastHash
  }

  /**
   * Undefined if the export ends before a key rotation: the server no longer has the old key, and a verifier
   * of the export alone does not know a later one. Also undefined while the strand is being imported.
   */
  async #checkpoint({ request, read, located, toSeq }: ExportBody): Promise<string | undefined> {
    const { agent } = request
    const { shard, agentNo } = located
    const size = toSeq + 1
    const root = await read('treeRoot', { shard, agentNo, size })
    const outcome = await this.#shards.request(agent, {
      kind: 'checkpointSign',
      agent,
      size,
      root,
      by: 'then',
    })
    const importing = 'code' in outcome && outcome.code === 'import_open'
    if (outcome.kind === 'done' || importing) return undefined
    const answer = answerOf(outcome)
    if ('code' in answer) throw new RefusedError(answer)
    return answer.body
  }
}

/** An export whose response head was sent. */
interface ExportBody {
  request: ExportRequest
  /** Id of the principal. */
  caller: string
  read: Read
  located: LocatedOutcome
  toSeq: number
  /** Absent if the export is not compressed. */
  coder?: StreamCoder
}

/** The public key at the record `seq`. */
function keyAt({ publicKey, retiredKeys }: LocatedOutcome, seq: number): string {
  return retiredKeys.find(({ lastSeq }) => seq <= lastSeq)?.publicKey ?? publicKey
}

/** Writes a part; resolves when the socket accepts more. */
type PacedWrite = (text: string | Uint8Array) => Promise<void>

/**
 * Returns a function that writes a part and resolves when the socket accepts more or the client has
 * disconnected.
 */
function paceOf(exchange: Exchange): PacedWrite {
  let release: (() => void) | undefined
  const releaseWaiter = () => {
    release?.()
    release = undefined
  }
  exchange.onDisconnect(releaseWaiter)
  exchange.onWritable(releaseWaiter)
  return (text) => {
    if (text.length === 0 || !exchange.open || exchange.write(text)) return Promise.resolve()
    return exchange.open ? new Promise((resolve) => (release = resolve)) : Promise.resolve()
  }
}
