import { Type, type Static } from 'typebox'
import { reader } from './validate.js'

/** A request to the control socket of a running server, one line of JSON. */
const ControlRequest = Type.Object({
  /**
   * Target directories of the stores, in the order of the shards: absolute paths of existing, empty
   * directories.
   */
  copy_to: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 16 }),
})
export type ControlRequest = Static<typeof ControlRequest>

const Copied = Type.Object({ agents: Type.Integer(), records: Type.Integer() })

/** A line of the answer: progress; the last line has the result or the reason of a failure. */
const ControlAnswer = Type.Union([
  Type.Object({ copied_bytes: Type.Integer() }),
  Type.Object({ copied: Type.Array(Copied) }),
  Type.Object({ failed: Type.String() }),
])
export type ControlAnswer = Static<typeof ControlAnswer>

const requestReader = reader(ControlRequest)
const answerReader = reader(ControlAnswer)

/** Parses a request; undefined if it is invalid. */
export function parseControlRequest(line: string): ControlRequest | undefined {
  const read = requestReader.bytes(Buffer.from(line))
  return 'value' in read ? read.value : undefined
}

/** Parses a line of an answer; undefined if it is invalid. */
export function parseControlAnswer(line: string): ControlAnswer | undefined {
  const read = answerReader.bytes(Buffer.from(line))
  return 'value' in read ? read.value : undefined
}
