import { hasKind, type Check } from '../base/shape.js'

/*
 * Messages between two nodes over a link, beside frames of shards (docs/adr/0047-links.md). Each front of a
 * node is also a front of the shards that the other node owns. The first message names the build of the
 * program, which both nodes share, so later messages are not checked. A term distinguishes the threads of a
 * shard.
 */

/** One run of a node, from start to end. */
export interface NodeId {
  node: string
  incarnation: number
}

interface ThreadName {
  shard: number
  term: number
}

/** The number of the last frame with notices that was processed. */
interface NoticeProgress extends ThreadName {
  noticeNo: number
}

export type ToOwner =
  /** The first message: the build of the program, the sender and the expected receiver. */
  | { kind: 'hello'; version: string; from: NodeId; to: NodeId }
  /** `atMs` is by the sender's clock. */
  | { kind: 'ping'; atMs: number }
  /** The front serves: it has caught up, and has processed the notices up to a number. */
  | ({ kind: 'serves' } & NoticeProgress)
  /** The front has processed the notices up to a number. */
  | ({ kind: 'acknowledged' } & NoticeProgress)
  /** The front sends nothing more to a shard that moves, and accepts no credential by its state. */
  | ({ kind: 'released' } & ThreadName)
  /** The front holds no state of a shard's thread: the owner must not wait for it. */
  | ({ kind: 'leaves' } & ThreadName)
  /** The front ends and answers no more clients, so the owner need not wait for its lease to expire. */
  | { kind: 'ends' }
  /** A call, or the reply to one. */
  | { kind: 'call'; message: unknown }

/** Not checked further, because the sender has the same build. */
export const isToOwner: Check<ToOwner> = hasKind<ToOwner>({
  hello: true,
  ping: true,
  serves: true,
  acknowledged: true,
  released: true,
  leaves: true,
  ends: true,
  call: true,
})

export type ToFront =
  /** The first message: the number of the front. */
  | { kind: 'welcome'; front: number }
  /** `isElsewhere`: the owner has a lease, and does not know the other node: their databases differ. */
  | { kind: 'refused'; reason: string; isElsewhere: boolean }
  /** The front may answer for `forMs` after its ping. */
  | { kind: 'pong'; atMs: number; forMs: number; readOnly: boolean }
  /** The thread of a shard is open. A later owner has a higher term. */
  | ({ kind: 'joined' } & ThreadName)
  /** The shard moves to another owner: the front must send no more commands. */
  | ({ kind: 'leaving' } & ThreadName)
  /** The thread of a shard has ended. */
  | ({ kind: 'left' } & ThreadName)
  /** Every front has processed the notices up to a number. */
  | ({ kind: 'allAcknowledged' } & NoticeProgress)
  /** The owner is stopping: it releases all its shards and must get none. */
  | { kind: 'stops' }
  /** The owner has released a shard so that the receiver can take it. */
  | { kind: 'offered'; shard: number }
  | { kind: 'call'; message: unknown }

export const isToFront: Check<ToFront> = hasKind<ToFront>({
  welcome: true,
  refused: true,
  pong: true,
  joined: true,
  leaving: true,
  left: true,
  allAcknowledged: true,
  stops: true,
  offered: true,
  call: true,
})
