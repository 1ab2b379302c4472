/*
 * What two nodes say to each other over a link, beside frames of shards (docs/adr/0047-links.md). Who stands by is a front
 * of the shards of the node that owns them. Both run the same version of the program, which the first message says, so
 * what follows is not checked.
 */

/** What a node that stands by says. */
export type ToOwner =
  /** The first message. */
  | { kind: 'hello'; version: string; node: string; incarnation: number }
  /** Its front is there: shards may wait for it from now on. */
  | { kind: 'made' }
  /** By its clock, milliseconds. */
  | { kind: 'ping'; atMs: number }
  /** It has learnt what it must know of a shard, and what was told up to a frame. */
  | { kind: 'serves'; shard: number; told: number }
  /** It has taken what a frame told. */
  | { kind: 'taken'; shard: number; told: number }
  /** A call, or the answer to one. */
  | { kind: 'call'; message: unknown }

/** Whether a message is of such a node; of the same version, so it is what it says. */
export const isToOwner = (value: unknown): value is ToOwner => hasKind(value)

/** What the owner of the shards says. */
export type ToFront =
  /** The first message: the number of the front that the other node is. */
  | { kind: 'welcome'; front: number; hasServerLog: boolean }
  | { kind: 'refused'; reason: string }
  /** It may answer for so long from when it asked. */
  | { kind: 'pong'; atMs: number; forMs: number; readOnly: boolean }
  /** The thread of a shard is there. */
  | { kind: 'joined'; shard: number }
  /** It has ended. */
  | { kind: 'left'; shard: number }
  /** Every front has taken what a frame told. */
  | { kind: 'allTaken'; shard: number; told: number }
  /** It takes no new requests. */
  | { kind: 'stopping' }
  | { kind: 'call'; message: unknown }

/** The same of the owner. */
export const isToFront = (value: unknown): value is ToFront => hasKind(value)

function hasKind(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'kind' in value && typeof value.kind === 'string'
}
