import { Packr, Unpackr } from 'msgpackr'
import { limits } from '../base/limits/limits.js'
import { hasKind } from '../base/shape.js'
import type { Command, Outcome } from './messages.js'
import type { StreamEvent } from './stream-messages.js'
import type { ShardFigures } from './shard-figures.js'
import type { Notice } from './notices.js'

/** Commands, each with the number under which its outcome returns. */
export type CommandFrame = [id: number, command: Command][]

export interface OutcomeFrame {
  outcomes: [id: number, outcome: Outcome][]
  /** Committed records for streams, in commit order. */
  events: StreamEvent[]
  figures: ShardFigures
  /** Notices that every front must process before any caller gets the outcomes and events. */
  notices: Notice[]
  /**
   * Whether the log has stored a group that was decided with the outcomes, which proves that no other writer
   * had appended before. Outcomes without a group need the lease of a node
   * (docs/adr/0046-members-of-a-cluster.md).
   */
  appended: boolean
  /** The callers of large reads among the outcomes, by command number. */
  large?: ReadonlyMap<number, string>
}

/** The part of an outcome frame that one front receives. */
export interface FrontFrame extends Omit<OutcomeFrame, 'figures' | 'large'> {
  /** The number of frames with notices up to this one; wraps around. */
  noticeNo: number
  /** Whether later frames may have overtaken this one. */
  isLate?: true
}

/** The outcome of a large read for a front of another node, which later frames may overtake. */
export interface LateFrame {
  kind: 'late'
  /** The number of the command. */
  id: number
  caller: string
  /** A `FrontFrame`. */
  frame: ArrayBuffer
}

/** The reply to a frame of a front in another node that does not have valid commands of that front. */
export interface InvalidFrame {
  kind: 'invalid'
  /** The number of commands that its header states. */
  count: number
}

/** A message of a shard to a front, beside frames. Its sender was compiled with this code. */
export const isFrameNotice = hasKind<LateFrame | InvalidFrame>({ late: true, invalid: true })

/** The front of a command: a front numbers commands in steps of `limits.frontNumbers`, from its number. */
export function frontOf(commandId: number): number {
  return commandId % limits.frontNumbers
}

// Plain maps, because record structures would be defined again in every frame.
const packr = new Packr({ useRecords: false })
const unpackr = new Unpackr({ useRecords: false })

/** A field of at least so many bytes is appended unpacked, so that it is copied once and not three times. */
const LARGE_BYTES = 65_536

/** A packed frame, which is followed by the large fields of its commands in order. */
interface PackedFrame {
  frame: CommandFrame
  /** The index of each command with a large field, the name of the field and its length. */
  large: [index: number, name: 'body' | 'chunk', length: number][]
}

/** Packs commands into new memory, which can be transferred to another thread. */
export function encodeCommands(frame: CommandFrame): ArrayBuffer {
  const large: PackedFrame['large'] = []
  const fields: Uint8Array[] = []
  const small = frame.map(([id, command], index): CommandFrame[number] => {
    if ('body' in command && command.body.length >= LARGE_BYTES) {
      large.push([index, 'body', command.body.length])
      fields.push(command.body)
      return [id, { ...command, body: noBytes }]
    }
    if ('chunk' in command && command.chunk.length >= LARGE_BYTES) {
      large.push([index, 'chunk', command.chunk.length])
      fields.push(command.chunk)
      return [id, { ...command, chunk: noBytes }]
    }
    return [id, command]
  })
  const packed = packr.pack({ frame: small, large } satisfies PackedFrame)
  return newMemory(packed, fields, [packed.length, frame.length])
}

const noBytes = new Uint8Array(0)

/** Decodes the commands of a frame. Their byte fields are views of `memory`, which must not be released. */
export function decodeCommands(memory: ArrayBuffer): CommandFrame {
  const length = new DataView(memory).getUint32(0)
  const packed = unpackr.unpack(new Uint8Array(memory, HEADER_BYTES, length)) as PackedFrame
  let at = HEADER_BYTES + length
  for (const [index, name, bytes] of packed.large) {
    const command = packed.frame[index]?.[1]
    if (command !== undefined) Object.assign(command, { [name]: new Uint8Array(memory, at, bytes) })
    at += bytes
  }
  return packed.frame
}

export function encodeOutcomes(frame: FrontFrame): ArrayBuffer {
  return newMemory(packr.pack(frame), [], [frame.noticeNo, frame.outcomes.length])
}

export function decodeOutcomes(memory: ArrayBuffer): FrontFrame {
  return unpackr.unpack(new Uint8Array(memory, HEADER_BYTES)) as FrontFrame
}

/**
 * The frame header: two 32-bit numbers that a relay reads without unpacking. The first is the length of the
 * packed commands, or the notice number of outcomes; the second is the number of commands or outcomes.
 */
const HEADER_BYTES = 8

/** The number of commands or outcomes of a frame. */
export function countOf(memory: ArrayBuffer): number {
  return new DataView(memory).getUint32(4)
}

export function noticeNoOf(memory: ArrayBuffer): number {
  return new DataView(memory).getInt32(0)
}

/**
 * Copies the packed bytes, because msgpackr packs into a shared pool: transferring that would detach other
 * results.
 */
function newMemory(
  packed: Buffer,
  fields: readonly Uint8Array[],
  [first, count]: [number, number],
): ArrayBuffer {
  let length = HEADER_BYTES + packed.length
  for (const field of fields) length += field.length
  const memory = new ArrayBuffer(length)
  const bytes = new Uint8Array(memory)
  const header = new DataView(memory)
  header.setUint32(0, first)
  header.setUint32(4, count)
  bytes.set(packed, HEADER_BYTES)
  let at = HEADER_BYTES + packed.length
  for (const field of fields) {
    bytes.set(field, at)
    at += field.length
  }
  return memory
}
