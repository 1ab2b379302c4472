import { Packr, Unpackr } from 'msgpackr'
import { limits } from '../base/limits.js'
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
}

/** What one front is sent of that. */
export interface FrontFrame extends Omit<OutcomeFrame, 'figures'> {
  /** Counts the frames with notices, this one among them; wraps around. */
  told: number
}

/**
 * The front that a command came from: each numbers its commands in steps of `limits.frontsMax`, beginning with its own
 * number.
 */
export function frontOf(commandId: number): number {
  return commandId % limits.frontsMax
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
  return ownMemory(packr.pack({ frame: small, large } satisfies PackedFrame), fields)
}

const noBytes = new Uint8Array(0)

/** The commands of a frame. Their byte fields are views of `memory`, which must not be released. */
export function decodeCommands(memory: ArrayBuffer): CommandFrame {
  const length = new DataView(memory).getUint32(0)
  const packed = unpackr.unpack(new Uint8Array(memory, LENGTH_BYTES, length)) as PackedFrame
  let at = LENGTH_BYTES + length
  for (const [place, name, bytes] of packed.large) {
    const command = packed.frame[place]?.[1]
    if (command !== undefined) Object.assign(command, { [name]: new Uint8Array(memory, at, bytes) })
    at += bytes
  }
  return packed.frame
}

export function encodeOutcomes(frame: FrontFrame): ArrayBuffer {
  return ownMemory(packr.pack(frame), [])
}

export function decodeOutcomes(memory: ArrayBuffer): FrontFrame {
  return unpackr.unpack(new Uint8Array(memory, LENGTH_BYTES)) as FrontFrame
}

/** The length of the packed part comes first. */
const LENGTH_BYTES = 4

/** msgpackr packs into a pool that it shares between results: transferring that would empty its neighbours. */
function ownMemory(packed: Buffer, fields: readonly Uint8Array[]): ArrayBuffer {
  let length = LENGTH_BYTES + packed.length
  for (const field of fields) length += field.length
  const memory = new ArrayBuffer(length)
  const bytes = new Uint8Array(memory)
  new DataView(memory).setUint32(0, packed.length)
  bytes.set(packed, LENGTH_BYTES)
  let at = LENGTH_BYTES + packed.length
  for (const field of fields) {
    bytes.set(field, at)
    at += field.length
  }
  return memory
}
