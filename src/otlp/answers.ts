import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { refuse, statusOf, type Refusal } from '../base/errors.js'
import type { IngestTotals } from '../front/http/ingest/summary.js'
import { replayedHeaders } from '../front/routes/answers.js'
import { fieldOf, otlpRefusal } from '../front/routes/otlp.js'
import type { Answer, IngestOptions, IngestSource } from '../front/routes/route.js'
import { type OtlpSignal, protobufType } from '../wire/otlp.js'

/** What an OTLP request carries, and in which encoding. */
export type OtlpFormat = Omit<Extract<IngestSource, { kind: 'otlp' }>, 'kind'>

/** Reasons in the answer to a request of which a part was refused. */
const REASONS_MAX = 3

/**
 * The answer to an OTLP request. A sender repeats nothing of a request of which a part was accepted, so the
 * request is refused if the server could not write a record now; also if none was accepted, or if
 * on_error=keep could not store one.
 */
export function answerExport(
  totals: IngestTotals,
  format: OtlpFormat,
  { onError }: IngestOptions,
): Answer | Refusal {
  const lost = totals.rejected - totals.kept
  if (lost > 0) {
    const code = totals.codes().find((each) => statusOf(otlpRefusal(refuse(each, ''))) >= 500)
    if (code !== undefined || totals.accepted === 0 || onError === 'keep') {
      const detail = `Could not write ${lost} ${lost === 1 ? 'record' : 'records'}: ${reasonsOf(totals)}`
      return refuse(code ?? 'ingest_rejected', detail, { extra: totals.counts() })
    }
  }
  return { ...exported(format, totals), headers: totals.replayed ? replayedHeaders : [] }
}

/**
 * The answer if records were written: a message in the encoding of the request (OTLP Specification, OTLP/HTTP
 * Response). It is empty if all were, and otherwise has the number of the others and the first reasons.
 */
function exported({ signal, encoding }: OtlpFormat, totals: IngestTotals): Answer {
  const partial = totals.rejected === 0 ? undefined : partialOf(totals)
  if (encoding === 'protobuf') {
    const message = partial === undefined ? noBytes : inWire(partial)
    return { status: 200, contentType: protobufType, body: [message] }
  }
  const message = partial === undefined ? {} : inJson(partial, signal)
  return { status: 200, body: JSON.stringify(message) }
}

const noBytes = new Uint8Array(0)

interface Partial {
  /** Records that are not on disk. */
  rejected: number
  reason: string
}

function partialOf(totals: IngestTotals): Partial {
  const { rejected, kept } = totals
  const stored = kept === 0 ? '' : `${kept} refused records are stored as ingest/rejected; `
  return { rejected: rejected - kept, reason: stored + reasonsOf(totals) }
}

/** Why records were refused: the first reasons, and how many more there are. */
function reasonsOf(totals: IngestTotals): string {
  const reasons = totals
    .many()
    .errors.slice(0, REASONS_MAX)
    .map(({ line, code, detail }) => `record ${line}: ${code}: ${detail}`)
  const more = totals.rejected - reasons.length
  return [...reasons, ...(more > 0 ? [`${more} more`] : [])].join('; ')
}

function inJson({ rejected, reason: errorMessage }: Partial, signal: OtlpSignal): object {
  const counted = signal === 'logs' ? 'rejectedLogRecords' : 'rejectedSpans'
  return { partialSuccess: { ...(rejected > 0 && { [counted]: String(rejected) }), errorMessage } }
}

/** The field `partial_success`, whose fields have the same numbers for logs and spans. */
function inWire({ rejected, reason }: Partial): Uint8Array {
  const writer = new BinaryWriter().uint32(fieldOf(1, 2)).fork()
  if (rejected > 0) writer.uint32(fieldOf(1, 0)).int64(rejected)
  return writer.uint32(fieldOf(2, 2)).string(reason).join().finish()
}
