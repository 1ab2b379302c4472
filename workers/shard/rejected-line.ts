import { createHash } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import { asBuffer } from '../../src/base/bytes.js'
import type { Refusal } from '../../src/base/errors.js'
import { canonicalJson } from '../../src/strand/json.js'
import { rejectedType } from '../../src/strand/record-type.js'
import type { DraftRules } from '../commands/drafts.js'
import type { Draft } from './commit-group.js'

/** The most bytes that the other members of a kept line take. */
const FRAME_BYTES = 1_024

/** The most bytes that one byte of a text takes in JSON: `\u0000`. */
const ESCAPED_BYTES = 6

/**
 * The record that a refused line is kept as (docs/PIPELINES.md): `{line, code, detail, text}`, `base64` instead of
 * `text` if the line is not UTF-8; of a line that does not fit into a record only its beginning, with `bytes` and
 * `sha256` of the whole.
 * @returns undefined if not even that fits
 */
export function rejectedDraft(
  { line, bytes }: { line: number; bytes: Uint8Array },
  { code, detail }: Refusal,
  rules: DraftRules,
): Draft | undefined {
  const raw = asBuffer(bytes)
  const told = { line, code, detail }
  const whole = raw.length > rules.recordBytesMax ? undefined : bodyOf({ ...told, ...textOf(raw) })
  const body =
    whole !== undefined && whole.length <= rules.recordBytesMax
      ? whole
      : bodyOf({ ...told, ...cutText(raw, rules.recordBytesMax) })
  if (body.length > rules.recordBytesMax) return undefined
  return { type: rejectedType, body, signing: rules.signing, ingested: rules.ingested === true }
}

function bodyOf(value: object): Buffer {
  return Buffer.from(canonicalJson(value))
}

function textOf(raw: Buffer): { text: string } | { base64: string } {
  return isUtf8(raw) ? { text: raw.toString('utf8') } : { base64: raw.toString('base64') }
}

function cutText(raw: Buffer, recordBytesMax: number): object {
  let end = Math.max(0, Math.floor((recordBytesMax - FRAME_BYTES) / ESCAPED_BYTES))
  // Not within a character.
  if (isUtf8(raw)) while (end > 0 && ((raw[end] ?? 0) & 0xc0) === 0x80) end--
  const sha256 = createHash('sha256').update(raw).digest('hex')
  return { ...textOf(raw.subarray(0, end)), bytes: raw.length, sha256 }
}
