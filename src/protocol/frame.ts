import { Packr, Unpackr } from 'msgpackr'
import { limits } from '../base/limits/limits.js'
import type { Command, Outcome, StreamEvent } from './messages.js'
import type { ShardFigures } from './shard-figures.js'
import type { Notice } from './notices.js'

/** Commands in flight: the number under which the outcome comes back, and the command. */
export type CommandFrame = [id: number, command: Command][]

/** The results of one commit group, for all fronts. */
export interface OutcomeFrame {
  outcomes: [id: number, outcome: Outcome][]
  /** Committed records that streams wait for, in commit order. */
  events: StreamEvent[]
  figures: ShardFigures
  /** What every front must process before anyone gets the outcomes and events. */
  notices: Notice[]
  /**
   * The log has taken a group that was decided together with the outcomes: nobody else had appended anything before.
   * Outcomes without one need the lease of a node (docs/adr/0046-members-of-a-cluster.md).
   */
  appended: boolean
  /** Callers of large reads among them, by the numbers of those commands. */
  large?: ReadonlyMap<number, string>
}

/** What one front is sent of that. */
export interface FrontFrame extends Omit<OutcomeFrame, 'figures' | 'large'> {
  /** Counts the frames with notices, this one among them; wraps around. */
  told: number
  /** Others may have overtaken it. */
  isLate?: true
}

/** The outcome of a large read for a front of another node, which others may overtake on their way. */
export interface LateFrame {
  kind: 'late'
  /** The number of the command. */
  id: number
  caller: string
  /** A `FrontFrame`. */
  frame: ArrayBuffer
}

export function isLateFrame(message: unknown): message is LateFrame {
  return typeof message === 'object' && message !== null && 'kind' in message && message.kind === 'late'
}

/**
 * The front that a command came from: each numbers its commands in steps of `limits.frontNumbers`, beginning with its own
 * number.
 */
export function frontOf(commandId: number): number {
  return commandId % limits.frontNumbers
}

// Plain maps: record structures would have to be defined again in every frame.
const packr = new Packr({ useRecords: false })
const unpackr = new Unpackr({ useRecords: false })

/** Bytes from which a field of a command is appended unpacked, so that it is copied once and not three times. */
const LARGE_BYTES = 65_536

/** A frame of which some commands have large fields, which follow the packed part in order. */
interface PackedFrame {
  frame: CommandFrame
  /** The place of each command with a large field, the field's name and its length. */
  large: [place: number, name: 'body' | 'chunk', length: number][]
}

/** Packs commands into memory of their own, which can be transferred to the other thread. */
export function encodeCommands(frame: CommandFrame): ArrayBuffer {
  const large: PackedFrame['large'] = []
  const fields: Uint8Array[] = []
  const small = frame.map(([id, command], place): CommandFrame[number] => {
    if ('body' in command && command.body.length >= LARGE_BYTES) {
      large.push([place, 'body', command.body.length])
      fields.push(command.body)
      return [id, { ...command, body: noBytes }]
    }
    if ('chunk' in command && command.chunk.length >= LARGE_BYTES) {
      large.push([place, 'chunk', command.chunk.length])
      fields.push(command.chunk)
      return [id, { ...command, chunk: noBytes }]
    }
    return [id, command]
  })
  const packed = packr.pack({ frame: small, large } satisfies PackedFrame)
  return ownMemory(packed, fields, [packed.length, frame.length])
}

const noBytes = new Uint8Array(0)

/** The commands of a frame. Their byte fields are views of `memory`, which must not be released. */
export function decodeCommands(memory: ArrayBuffer): CommandFrame {
  const length = new DataView(memory).getUint32(0)
  const packed = unpackr.unpack(new Uint8Array(memory, HEAD_BYTES, length)) as PackedFrame
  let at = HEAD_BYTES + length
  for (const [place, name, bytes] of packed.large) {
    const command = packed.frame[place]?.[1]
    if (command !== undefined) Object.assign(command, { [name]: new Uint8Array(memory, at, bytes) })
    at += bytes
  }
  return packed.frame
}

export function encodeOutcomes(frame: FrontFrame): ArrayBuffer {
  return ownMemory(packr.pack(frame), [], [frame.told, frame.outcomes.length])
}

export function decodeOutcomes(memory: ArrayBuffer): FrontFrame {
  return unpackr.unpack(new Uint8Array(memory, HEAD_BYTES)) as FrontFrame
}

/**
 * What comes first, two numbers of 32 bits that whoever passes a frame on need not unpack: of commands the length of the
 * packed part, of outcomes the count of frames with notices; then how many commands or outcomes there are.
 */
const HEAD_BYTES = 8

/** How many commands, or outcomes, a frame has. */
export function countOf(memory: ArrayBuffer): number {
  return new DataView(memory).getUint32(4)
}

/** The count of frames with notices up to a frame of outcomes. */
export function toldOf(memory: ArrayBuffer): number {
  return new DataView(memory).getInt32(0)
}

/** msgpackr packs into a pool that it shares between results: transferring that would empty its neighbours. */
function ownMemory(
  packed: Buffer,
  fields: readonly Uint8Array[],
  [first, count]: [number, number],
): ArrayBuffer {
  let length = HEAD_BYTES + packed.length
  for (const field of fields) length += field.length
  const memory = new ArrayBuffer(length)
  const bytes = new Uint8Array(memory)
  const head = new DataView(memory)
  head.setUint32(0, first)
  head.setUint32(4, count)
  bytes.set(packed, HEAD_BYTES)
  let at = HEAD_BYTES + packed.length
  for (const field of fields) {
    bytes.set(field, at)
    at += field.length
  }
  return memory
}
