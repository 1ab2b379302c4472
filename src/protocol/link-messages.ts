import { hasKind, type Check } from '../base/shape.js'

/*
 * What two nodes say to each other over a link, beside frames of shards (docs/adr/0047-links.md). Each front of a
 * node is one of the shards that the other node owns. Both run the same version of the program, which the first message says, so
 * what follows is not checked. The term of a thread tells it from those before.
 */

/** A node, from its start to its end. */
export interface NodeId {
  node: string
  incarnation: number
}

/** What a front of another node says. */
export type ToOwner =
  /** The first message: who it is, and whom it expects. */
  | { kind: 'hello'; version: string; from: NodeId; to: NodeId }
  /** By its clock, milliseconds. */
  | { kind: 'ping'; atMs: number }
  /** It has learnt what it must know of a shard, and what was told up to a frame. */
  | { kind: 'serves'; shard: number; term: number; told: number }
  /** It has taken what a frame told. */
  | { kind: 'taken'; shard: number; term: number; told: number }
  /** It sends nothing more to a shard that is to have another owner, and lets nobody in by what that has told. */
  | { kind: 'released'; shard: number; term: number }
  /** It keeps nothing of what the thread of a shard has told, or never talks to it: nobody need wait for it. */
  | { kind: 'leaves'; shard: number; term: number }
  /** It ends, and answers nobody any more: it need not be waited for until it may not. */
  | { kind: 'ends' }
  /** A call, or the answer to one. */
  | { kind: 'call'; message: unknown }

/** Whether a message is of such a front; of the same version, so it is what it says. */
export const isToOwner: Check<ToOwner> = hasKind

/** What an owner of shards says. */
export type ToFront =
  /** The first message: the number of the front. */
  | { kind: 'welcome'; front: number }
  | { kind: 'refused'; reason: string }
  /** It may answer for so long from when it asked. */
  | { kind: 'pong'; atMs: number; forMs: number; readOnly: boolean }
  /** The thread of a shard is there; one of a later owner has a higher term. */
  | { kind: 'joined'; shard: number; term: number }
  /** It is to have another owner: nothing more may be sent to it. */
  | { kind: 'leaving'; shard: number; term: number }
  /** It has ended. */
  | { kind: 'left'; shard: number; term: number }
  /** Every front has taken what a frame told. */
  | { kind: 'allTaken'; shard: number; term: number; told: number }
  /** It is about to give all its shards up, and is to have none. */
  | { kind: 'stops' }
  /** It has given a shard up for the other node to have. */
  | { kind: 'offered'; shard: number }
  | { kind: 'call'; message: unknown }

/** The same of the owner. */
export const isToFront: Check<ToFront> = hasKind
