import { isNumber, isText, listOf, members, type Check } from '../base/shape.js'
import type { CheckedRecords, EffectAt } from './import-messages.js'
import { answerOf } from './pool-tasks.js'

/*
 * The file in which checked records of an import wait for the end of their export
 * (docs/adr/0039-imports-wait.md). Each part has the lengths of its two pieces, the metadata of the records
 * as JSON, and the records in the form of a store's block.
 */

/** The bytes of the two lengths. */
export const partHeadBytes = 8

/** Encodes the lengths and the metadata of a part. */
export function partHead({ chunk, ...metadata }: CheckedRecords): Buffer {
  const text = Buffer.from(JSON.stringify(metadata))
  const lengths = Buffer.alloc(partHeadBytes)
  lengths.writeUInt32LE(text.length, 0)
  lengths.writeUInt32LE(chunk.length, 4)
  return Buffer.concat([lengths, text])
}

export function partLengths(head: Buffer): { metadata: number; chunk: number } {
  return { metadata: head.readUInt32LE(0), chunk: head.readUInt32LE(4) }
}

type PartMetadata = Omit<CheckedRecords, 'chunk'>

/**
 * A reader of this server wrote the file, so other members of an effect than its seq and kind are not
 * checked.
 */
const isEffect: Check<EffectAt> = (value): value is EffectAt =>
  members<{ seq: number; kind: string }>({ seq: isNumber, kind: isText })(value)

const isCommitment: Check<[number, string]> = (value): value is [number, string] =>
  Array.isArray(value) && isNumber(value[0]) && isText(value[1])

const isPartMetadata: Check<PartMetadata> = members<PartMetadata>({
  firstSeq: isNumber,
  lastSeq: isNumber,
  lastHash: isText,
  key: isText,
  effects: listOf(isEffect),
  commitments: listOf(isCommitment),
})

export function partOf(metadata: Buffer, chunk: Uint8Array): CheckedRecords {
  return { ...answerOf(isPartMetadata, JSON.parse(metadata.toString())), chunk }
}
