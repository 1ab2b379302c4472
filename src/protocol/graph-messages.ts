import type { Hlc } from '../strand/hlc.js'
import type { UserAccess, WriteOptions } from './command-options.js'
import type { Author } from './proposal-messages.js'

/*
 * Messages about edges and past states of strands. An edge is in the shard of its source, in both indexes, so
 * that one transaction adds or removes it (docs/adr/0018-graph.md).
 */

/** Adds an edge or changes its weight. `dst` was checked before, because agents are never removed. */
export interface EdgeAdd {
  kind: 'edgeAdd'
  agent: string
  dst: string
  edgeType: string
  weight: number
  options: WriteOptions
}

/** Removes an edge, if the zone of its source allows it. */
export interface EdgeRemove extends Author {
  kind: 'edgeRemove'
  agent: string
  dst: string
  edgeType: string
  options: WriteOptions
}

/** The position of an edge in the list of its agent: by type, then by the other agent. */
export interface EdgeCursor {
  edgeType: string
  other: string
}

/**
 * Lists edges of one agent, in order. `out` goes to the shard of the agent. `in` goes to every shard, which
 * answers with the edges whose source it owns, whether or not it has the agent.
 */
export interface EdgeList {
  kind: 'edgeList'
  agent: string
  direction: 'out' | 'in'
  edgeType?: string
  /** The edges as of this moment; the current ones when absent. */
  asOf?: Hlc
  after?: EdgeCursor
  /** The maximum of edges in the answer. */
  limit: number
  /** The maximum of index rows to scan, including those of removed edges. */
  lookMax: number
}

export interface EdgeRow {
  src: string
  dst: string
  edgeType: string
  weight: number
}

export interface EdgesOutcome {
  kind: 'edges'
  edges: EdgeRow[]
  /** Index rows that were scanned. */
  looked: number
  /** The last scanned position; absent at the end. */
  reached?: EdgeCursor
}

/** Reads a past state of a strand: at a moment, or at a seq that an earlier page names. */
export interface StrandThen {
  kind: 'strandThen'
  agent: string
  at: { moment: Hlc } | { seq: number }
  access?: UserAccess
}

/** A past state of a strand; without `head` before its genesis record. */
export interface StrandThenOutcome {
  kind: 'strandThen'
  shard: number
  agentNo: number
  head?: { seq: number; hash: string; zone: string }
}

export type GraphCommand = EdgeAdd | EdgeRemove | EdgeList | StrandThen

export type GraphOutcome = EdgesOutcome | StrandThenOutcome
