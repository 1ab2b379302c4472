import { hlcOf, type ChainRecord, type ZoneName } from './strand.js'

/*
 * What the plain model knows, and what can be asked of it and of the server alike. All of it is in memory and plain
 * data; the rules are in rules.ts.
 */

/** Who asks. */
export interface Actor {
  /** As strands name it: `root`, or the id of a scoped key. */
  id: string
  /** The first of the keys that made one another down to this one; itself for others. */
  line: string
  key: string
  /** When the key was made: one that is younger than a proposal does not approve it. */
  madeAtMs: number
  scopes: readonly string[]
  /** The beginning of the names of the agents that it reaches; empty for all. */
  reach: string
}

/** What happens to something that was written before. */
export type Mutation =
  | { action: 'delete' | 'restore' | 'erase'; target: string; target_seq: number }
  | { action: 'remove_edge'; edge_type: string; dst: string }
  | { action: 'zone'; zone: ZoneName }
  | { action: 'policies'; policies: unknown[] }
  /** The key is not known before the server has drawn it. */
  | { action: 'rotate_key'; public_key: string | undefined }

export type Vote = 'approve' | 'reject' | 'cancel'

/** A proposal and what became of it. */
export interface Proposal {
  agent: string
  /** Of its record. */
  seq: number
  mutation: Mutation
  zone: ZoneName
  state: 'proposed' | 'applied' | 'rejected' | 'cancelled' | 'expired'
  proposer: string
  /** The proposer's. */
  line: string
  votes: { principal: string; line: string; vote: Vote; at_ms: number }[]
  createdAtMs: number
  effectiveAtMs: number | null
  expiresAtMs: number
  endedAtMs: number | null
  reason: string | null
}

/** One record of a write. `data` and `type` are sent as they are, good or bad. */
export interface Item {
  data: unknown
  type?: unknown
}

/** A call that may write. */
export type Asked =
  | { kind: 'createAgent'; agent: string; zone: ZoneName; seedHex?: string }
  | { kind: 'write'; agent: string; via: 'agent' | 'collection' | 'ingest'; item: Item }
  | { kind: 'batch'; agent: string; via: 'agent' | 'collection'; items: Item[]; atomic: boolean }
  | { kind: 'ingest'; agent: string; lines: string[]; all: boolean; asArray?: true }
  | { kind: 'ingestMany'; lines: string[]; all: boolean }
  | { kind: 'addEdge'; src: string; dst: string; edgeType: string; weight: number | undefined }
  | { kind: 'mutate'; agent: string; mutation: Mutation; seedHex?: string }
  | { kind: 'vote'; agent: string; seq: number; vote: Vote }

/** A call with who makes it and what it carries beside its body. */
export interface Call {
  asked: Asked
  by: Actor
  idempotencyKey?: string
  ifMatch?: string
  signing?: 'group'
}

/** An answer that is kept under an idempotency key. */
export interface Kept {
  /** What was asked, by a text that tells two requests apart. */
  request: string
  /** The answer's text; undefined where only the request is tied to the key. */
  answer: string | undefined
  atMs: number
}

/** Everything that the model knows. */
export interface World {
  /** What the server's clock says. */
  nowMs: number
  /** The latest that it has ever said. */
  latestMs: number
  /** Chains by agent. */
  chains: Map<string, ChainRecord[]>
  /** In the order that they were made. */
  proposals: Proposal[]
  /** By caller, realm and key. */
  kept: Map<string, Kept>
  /** Agents by the public keys that were asked for, for them or by them first. */
  keyOwners: Map<string, string>
  governedSecs: number
}

/** The chain of an agent that is there. */
export function chainOf(world: World, agent: string): ChainRecord[] {
  const chain = world.chains.get(agent)
  if (chain === undefined) throw new Error(`Expected agent ${agent} to be there`)
  return chain
}

/** Seq that the next record of an agent gets. */
export function nextSeq(world: World, agent: string): number {
  return world.chains.get(agent)?.length ?? 0
}

export const dayMs = 86_400_000

/** How long an answer is kept under an idempotency key. */
const keptMs = dayMs

/**
 * Where an answer is kept. Keys belong to their caller, and to the agent or whatever else `realm` names; those of ingest
 * streams, whose parts have keys of their own, are apart from others.
 */
export function keptPlace({ asked, by, idempotencyKey }: Call, realm: string): string {
  const ingests = asked.kind.startsWith('ingest') || (asked.kind === 'write' && asked.via === 'ingest')
  return [by.id, realm, idempotencyKey, ...(ingests ? ['ingest'] : [])].join('\n')
}

/** What is kept there, unless its day is over. */
export function keptAt(world: World, place: string): Kept | undefined {
  const kept = world.kept.get(place)
  return kept !== undefined && world.nowMs < kept.atMs + keptMs ? kept : undefined
}

/** The readings that a record written now can have: behind a clock that was set back, one may be ahead of it. */
export function readingsNow(world: World): { from: string; to: string } {
  return { from: hlcOf(world.nowMs, 'first'), to: hlcOf(world.latestMs, 'last') }
}
