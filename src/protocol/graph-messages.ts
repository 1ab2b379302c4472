import type { Hlc } from '../strand/hlc.js'
import type { UserAccess, WriteOptions } from './command-options.js'
import type { Author } from './proposal-messages.js'

/*
 * What the front thread asks of edges and of a strand as it was. An edge lives in the shard of its source, in both of
 * its indexes, so that one transaction takes it in and out (docs/adr/0018-graph.md).
 */

/** Adds an edge, or gives one that is there another weight. That `dst` exists was found out before: agents stay. */
export interface EdgeAdd {
  kind: 'edgeAdd'
  /** The source. */
  agent: string
  dst: string
  edgeType: string
  weight: number
  options: WriteOptions
}

/** Takes an edge away, as the zone of its source allows. */
export interface EdgeRemove extends Author {
  kind: 'edgeRemove'
  /** The source. */
  agent: string
  dst: string
  edgeType: string
  options: WriteOptions
}

/** Where one edge of an agent stands among its others: by type, then by the agent at the other end. */
export interface EdgePlace {
  edgeType: string
  other: string
}

/**
 * Some edges of one agent, in order. `out` goes to the shard of the agent; `in` to every shard, each of which tells of
 * the edges whose source is its own, whether it knows the agent or not.
 */
export interface EdgeList {
  kind: 'edgeList'
  agent: string
  direction: 'out' | 'in'
  edgeType?: string
  /** The edges as they were then; as they are now when absent. */
  asOf?: Hlc
  after?: EdgePlace
  /** Edges told at most. */
  limit: number
  /** Rows of the index looked at at most, those of edges that are not there any more included. */
  lookMax: number
}

/** One edge. */
export interface EdgeRow {
  src: string
  dst: string
  edgeType: string
  weight: number
}

/** Edges of one shard, in order. */
export interface EdgesOutcome {
  kind: 'edges'
  edges: EdgeRow[]
  /** Rows of the index that were looked at. */
  looked: number
  /** The last place that was looked at; absent when there is nothing behind it. */
  reached?: EdgePlace
}

/** Where a strand stood: at a moment, or at a seq that an earlier page names. */
export interface StrandThen {
  kind: 'strandThen'
  agent: string
  at: { moment: Hlc } | { seq: number }
  access?: UserAccess
}

/** A strand as it was. Before its genesis record there was none: no `head`. */
export interface StrandThenOutcome {
  kind: 'strandThen'
  shard: number
  agentNo: number
  head?: { seq: number; hash: string; zone: string }
}

export type GraphCommand = EdgeAdd | EdgeRemove | EdgeList | StrandThen

export type GraphOutcome = EdgesOutcome | StrandThenOutcome
