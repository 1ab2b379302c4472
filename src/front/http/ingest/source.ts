import { refuse, statusOf, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { EventHead } from '../../../protocol/record-messages.js'
import type { IngestManySummary, IngestSummary } from '../../../wire/ingest.js'
import type { Transfer } from '../../limits/transfers.js'
import { replayedHeaders } from '../../routes/answers.js'
import type { Answer, IngestOptions, IngestTarget, Principal } from '../../routes/route.js'
import type { BodyQueue } from '../body-queue.js'
import type { FrontSlices } from '../front-turn.js'
import { RecordedBody, reservedBody, type BodySource, type BrokenBody } from './array-body.js'
import type { IngestTotals } from './summary.js'

/** A format of bodies: how a body becomes lines, and how its sender is answered. */
export interface LineSource {
  /** The body is not text: a byte order mark is part of it. */
  isBinary?: boolean
  /** A body has a bounded number of lines, so refused ones do not end the upload. */
  isBounded?: true
  read(body: BodyQueue, stream: IngestStream): Promise<SourceContent>
  /** The answer to an upload that was read to its end. */
  answer(totals: IngestTotals, stream: IngestStream): Answer | Refusal
}

/** What a body consists of, or why nothing of it is written. */
export type SourceContent =
  /** Lines, which are written as they are read. `target`: where, if the body itself says it. */
  | { lines: BodySource; target?: IngestTarget }
  /** One record; `event`: the CloudEvent whose data it is. */
  | { record: BodySource; event?: EventHead }
  /** With on_error=keep, the body is stored as one line; `agent`: of which agent, unless the line names it. */
  | { malformed: Refusal; body: BodySource; agent?: string }
  | BrokenBody

/** One ingest request and the parts that it needs. */
export interface IngestStream {
  target: IngestTarget
  options: IngestOptions
  source: LineSource
  principal: Principal
  /** Whose quota of body bytes it uses. */
  holder: string
  shards: Shards
  slices: FrontSlices
  /** Counts the bytes of its body that are in memory. */
  memory: Transfer
  /** The most bytes of the body, by its head. */
  bodyBytesMax: number
  lineBytesMax: number
  /** Refused lines after which the upload is ended; 0 for no limit. */
  badLinesMax: number
  /** Counts refused lines by error code. */
  onRefused(code: string, count: number): void
}

/** One JSON value per line. */
export const lineSource: LineSource = { read: async (lines) => ({ lines }), answer: answerSummary }

/** The data of a CloudEvent in binary mode, in any format. */
export function eventSource(event: EventHead): LineSource {
  return {
    isBinary: event.data !== 'json',
    read: async (record) => ({ record, event }),
    answer: answerSummary,
  }
}

/**
 * A body that is read as a whole and then written, with a copy if it is stored when it is refused. What is made
 * of it takes at most as much as itself: all of it again (on_error=reject_all), or a chunk and an unfinished line.
 */
export function gatheredBody(
  source: BodySource,
  { options: { onError }, memory, bodyBytesMax, lineBytesMax }: IngestStream,
  bytesMax: number,
): BodySource {
  const bodyBytes = Math.min(bodyBytesMax, bytesMax)
  const copyBytes = onError === 'keep' ? Math.min(bodyBytes, limits.ingestAtomicBytesMax) : 0
  const lineBytes = onError === 'reject_all' ? bodyBytes : limits.ingestChunkBytes + 2 * lineBytesMax
  const bytes = bodyBytes + copyBytes + Math.min(bodyBytes, lineBytes)
  const body = reservedBody(source, { memory, bytes })
  return onError === 'keep' ? new RecordedBody(body, { memory, bodyBytesMax }) : body
}

/**
 * The answer with the summary of an ingest. A refusal if lines were refused and none was accepted, or if
 * on_error=keep could not store a line: a client that checks only the status must not believe that all was
 * accepted.
 */
export function answerSummary(
  totals: IngestTotals,
  { target, options }: Pick<IngestStream, 'target' | 'options'>,
): Answer | Refusal {
  const summary = summaryOf(totals, target)
  const lost = totals.rejected - totals.kept
  const isLost = options.onError === 'keep' ? lost > 0 : totals.accepted === 0 && lost > 0
  if (isLost) return refusalOf(totals, summary)
  const headers = totals.replayed ? replayedHeaders : []
  return { status: 200, body: JSON.stringify(summary), headers }
}

export function summaryOf(totals: IngestTotals, { agent }: IngestTarget): IngestSummary | IngestManySummary {
  return agent === undefined ? totals.many() : totals.one(agent)
}

/**
 * A refusal caused by the server, such as a clock that is behind, keeps its own code: the same upload can
 * succeed later.
 */
function refusalOf(totals: IngestTotals, summary: object): Refusal {
  const extra = { ...summary }
  const serverCode = totals.codes().find((code) => statusOf({ code, detail: '' }) >= 500)
  if (serverCode !== undefined)
    return refuse(serverCode, 'The server could not write the lines, try again', { extra })
  if (totals.tooLong !== undefined) {
    const detail = `Expected lines of at most ${limits.ingestAtomicBytesMax} bytes, got a longer one (line ${totals.tooLong})`
    return refuse('too_large', detail, { extra: totals.counts() })
  }
  const lost = totals.rejected - totals.kept
  return refuse('ingest_rejected', `Could not write ${lost} ${lost === 1 ? 'line' : 'lines'}`, { extra })
}
