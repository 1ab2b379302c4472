import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { statusOf, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { otlpEncodingOf, protobufType } from '../../wire/otlp.js'
import { problemDocuments, type RefusalForm } from './refusal-form.js'

/**
 * A refusal with a status of OTLP. A sender drops what is answered with another status than 429, 502, 503 or
 * 504: a full disk and an agent that is being imported are answered 503, and invalid records 400 (OTLP
 * Specification, Failures).
 */
export function otlpRefusal(refusal: Refusal): Refusal {
  const status = statusOf(refusal)
  if (status === 422) return { ...refusal, status: 400 }
  if (status === 507) return { retryAfterSecs: limits.storageFullRetrySecs, ...refusal, status: 503 }
  if (refusal.code === 'import_open') return { retryAfterSecs: 1, ...refusal, status: 503 }
  return status === 429 || status === 503 ? { retryAfterSecs: 1, ...refusal } : refusal
}

/** The form of refusals of a request: senders of protobuf get a google.rpc.Status. */
export function otlpRefusals(contentType: string): RefusalForm {
  const form = { ...problemDocuments, adapt: otlpRefusal }
  if (otlpEncodingOf(contentType) !== 'protobuf') return form
  return { ...form, encode: (refusal) => ({ contentType: protobufType, body: statusMessage(refusal) }) }
}

/** A google.rpc.Status with the member `message`. */
function statusMessage({ code, detail }: Refusal): Uint8Array {
  return new BinaryWriter().uint32(fieldOf(2, 2)).string(`${code}: ${detail}`).finish()
}

/** The tag of a field: its number, and its wire type: 0 for a number, 2 for bytes. */
export const fieldOf = (number: number, type: 0 | 2): number => (number << 3) | type
