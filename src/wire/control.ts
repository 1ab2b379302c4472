import { Type, type Static } from 'typebox'
import { reader } from './validate.js'

/** What is asked of a running server at its control socket, one line of JSON. */
const ControlRequest = Type.Object({
  /** Where to copy the stores: absolute paths of existing, empty directories, in the order of the shards. */
  copy_to: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 16 }),
})
export type ControlRequest = Static<typeof ControlRequest>

const Copied = Type.Object({ agents: Type.Integer(), records: Type.Integer() })

/** Its answer: lines of JSON, the last of which says what was copied or why nothing was. */
const ControlAnswer = Type.Union([
  Type.Object({ copied_bytes: Type.Integer() }),
  Type.Object({ copied: Type.Array(Copied) }),
  Type.Object({ failed: Type.String() }),
])
export type ControlAnswer = Static<typeof ControlAnswer>

const requestReader = reader(ControlRequest)
const answerReader = reader(ControlAnswer)

/** Reads a request; undefined when it is not one. */
export function parseControlRequest(line: string): ControlRequest | undefined {
  const read = requestReader.bytes(Buffer.from(line))
  return 'value' in read ? read.value : undefined
}

/** Reads a line of an answer; undefined when it is not one. */
export function parseControlAnswer(line: string): ControlAnswer | undefined {
  const read = answerReader.bytes(Buffer.from(line))
  return 'value' in read ? read.value : undefined
}
