import { isNumber, isText, listOf, members, type Check } from '../base/shape.js'
import type { CheckedRecords, EffectAt } from './import-messages.js'
import { answerOf } from './pool-tasks.js'

/*
 * Checked records of an import wait in a file for the end of their export (docs/adr/0039-imports-wait.md): for each
 * part the lengths of its two pieces, the records' effects as JSON, and the records in the form of a store's block.
 */

/** Bytes of the two lengths before a part. */
export const partHeadBytes = 8

/** The lengths and the JSON before the records of a part. */
export function partHead({ chunk, ...told }: CheckedRecords): Buffer {
  const text = Buffer.from(JSON.stringify(told))
  const lengths = Buffer.alloc(partHeadBytes)
  lengths.writeUInt32LE(text.length, 0)
  lengths.writeUInt32LE(chunk.length, 4)
  return Buffer.concat([lengths, text])
}

/** The lengths of the two pieces after their head. */
export function partLengths(head: Buffer): { told: number; chunk: number } {
  return { told: head.readUInt32LE(0), chunk: head.readUInt32LE(4) }
}

type ReadEffect = Omit<CheckedRecords, 'chunk'>

/** A reader of this server wrote the file, so members of an effect other than its seq and kind are not checked. */
const isEffect: Check<EffectAt> = (value): value is EffectAt =>
  members<{ seq: number; kind: string }>({ seq: isNumber, kind: isText })(value)

const isCommitment: Check<[number, string]> = (value): value is [number, string] =>
  Array.isArray(value) && isNumber(value[0]) && isText(value[1])

const isTold: Check<ReadEffect> = members<ReadEffect>({
  firstSeq: isNumber,
  lastSeq: isNumber,
  lastHash: isText,
  key: isText,
  effects: listOf(isEffect),
  commitments: listOf(isCommitment),
})

/** Makes a part from its two pieces. */
export function partOf(told: Buffer, chunk: Uint8Array): CheckedRecords {
  return { ...answerOf(isTold, JSON.parse(told.toString())), chunk }
}
