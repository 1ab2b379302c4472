import { Packr, Unpackr } from 'msgpackr'
import type { ApiKeyChanges } from './api-key-messages.js'
import type { Command, Outcome, ShardFigures, StreamEvent } from './messages.js'

/** Commands under way: the number by which its outcome comes back, and the command. */
export type CommandFrame = [id: number, command: Command][]

/** What one commit group led to. */
export interface OutcomeFrame {
  outcomes: [id: number, outcome: Outcome][]
  /** Committed records that somebody watches, in commit order. */
  events: StreamEvent[]
  figures: ShardFigures
  /** Agents whose row policies this group has changed: what users see by the old ones is to end. */
  policyChanges?: string[]
  /** Agents of which this group has erased records: their bodies are to be forgotten. */
  erasedOf?: string[]
  /** Hashes of records that this group has deleted, restored or erased: how they were shown is over. */
  changedRecords?: string[]
  /** Agents whose strands this group has taken imported records into, of which no event tells. */
  importedOf?: string[]
  /** API keys that this group has made or removed. */
  apiKeyChanges?: ApiKeyChanges
  /** What broke single reads, for the log; their callers are told no more than that it did. */
  failures?: string[]
}

// Plain maps: record structures would have to be defined again in every frame.
const packr = new Packr({ useRecords: false })
const unpackr = new Unpackr({ useRecords: false })

/** Packs commands into memory of their own, which can be handed over to the other thread. */
export function encodeCommands(frame: CommandFrame): ArrayBuffer {
  return ownMemory(packr.pack(frame))
}

/** The commands of a frame. Their byte fields are views of `memory`, which must stay. */
export function decodeCommands(memory: ArrayBuffer): CommandFrame {
  return unpackr.unpack(new Uint8Array(memory)) as CommandFrame
}

export function encodeOutcomes(frame: OutcomeFrame): ArrayBuffer {
  return ownMemory(packr.pack(frame))
}

export function decodeOutcomes(memory: ArrayBuffer): OutcomeFrame {
  return unpackr.unpack(new Uint8Array(memory)) as OutcomeFrame
}

/** msgpackr packs into a pool that it shares between results: transferring that would empty its neighbours. */
function ownMemory(packed: Buffer): ArrayBuffer {
  const memory = new ArrayBuffer(packed.length)
  new Uint8Array(memory).set(packed)
  return memory
}
