import type { Hlc } from '../strand/hlc.js'
import type { UserAccess, WriteOptions } from './command-options.js'
import type { Author } from './proposal-messages.js'

/*
 * Messages about edges, and about a strand as it was. An edge is in the shard of its source, in both indexes, so that
 * one transaction adds or removes it (docs/adr/0018-graph.md).
 */

/** Adds an edge, or gives an existing one another weight. `dst` was checked before: agents are never removed. */
export interface EdgeAdd {
  kind: 'edgeAdd'
  /** The source. */
  agent: string
  dst: string
  edgeType: string
  weight: number
  options: WriteOptions
}

/** Removes an edge, as the zone of its source allows. */
export interface EdgeRemove extends Author {
  kind: 'edgeRemove'
  /** The source. */
  agent: string
  dst: string
  edgeType: string
  options: WriteOptions
}

/** The place of one edge among those of its agent: by type, then by the agent at the other end. */
export interface EdgePlace {
  edgeType: string
  other: string
}

/**
 * Some edges of one agent, in order. `out` goes to the shard of the agent; `in` to every shard, each of which answers
 * with the edges whose source it owns, whether it knows the agent or not.
 */
export interface EdgeList {
  kind: 'edgeList'
  agent: string
  direction: 'out' | 'in'
  edgeType?: string
  /** The edges as they were then; as they are now when absent. */
  asOf?: Hlc
  after?: EdgePlace
  /** The most edges in the answer. */
  limit: number
  /** The most rows of the index that are looked at, those of removed edges included. */
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
  /** The last place that was looked at; absent when nothing comes after it. */
  reached?: EdgePlace
}

/** A strand as it was: at a moment, or at a seq that an earlier page names. */
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
