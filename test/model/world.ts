import { hlcOf, type ChainRecord, type ZoneName } from './strand.js'

/*
 * The state of the simple model and the calls to it and to the server, all as plain data; the rules are in
 * rules.ts.
 */

/** A caller. */
export interface Actor {
  /** The principal on strands: `root`, or the id of a scoped key. */
  id: string
  /** The lineage: the first of the keys that created one another down to this key; for others the id. */
  line: string
  key: string
  /** The creation time of the key; a key that is younger than a proposal cannot approve it. */
  madeAtMs: number
  scopes: readonly string[]
  /** The prefix of the names of the agents that it reaches; empty for all. */
  reach: string
}

/** A change of something that was written earlier. */
export type Mutation =
  | { action: 'delete' | 'restore' | 'erase'; target: string; target_seq: number }
  | { action: 'remove_edge'; edge_type: string; dst: string }
  | { action: 'zone'; zone: ZoneName }
  | { action: 'policies'; policies: unknown[] }
  /** The key is undefined until the server has generated it. */
  | { action: 'rotate_key'; public_key: string | undefined }

export type Vote = 'approve' | 'reject' | 'cancel'

/** A proposal and its state. */
export interface Proposal {
  agent: string
  /** The seq of its record. */
  seq: number
  mutation: Mutation
  zone: ZoneName
  state: 'proposed' | 'applied' | 'rejected' | 'cancelled' | 'expired'
  proposer: string
  /** The lineage of the proposer. */
  line: string
  votes: { principal: string; line: string; vote: Vote; at_ms: number }[]
  createdAtMs: number
  effectiveAtMs: number | null
  expiresAtMs: number
  endedAtMs: number | null
  reason: string | null
}

/** A record of a write. `data` and `type` are sent unchanged, valid or not. */
export interface Item {
  data: unknown
  type?: unknown
}

/** A call that may write. */
export type ModelRequest =
  | { kind: 'createAgent'; agent: string; zone: ZoneName; seedHex?: string }
  | { kind: 'write'; agent: string; via: 'agent' | 'collection' | 'ingest'; item: Item }
  | { kind: 'batch'; agent: string; via: 'agent' | 'collection'; items: Item[]; atomic: boolean }
  | { kind: 'ingest'; agent: string; lines: string[]; all: boolean; asArray?: true }
  | { kind: 'ingestMany'; lines: string[]; all: boolean }
  | { kind: 'addEdge'; src: string; dst: string; edgeType: string; weight: number | undefined }
  | { kind: 'mutate'; agent: string; mutation: Mutation; seedHex?: string }
  | { kind: 'vote'; agent: string; seq: number; vote: Vote }

/** A request with its caller and headers. */
export interface Call {
  request: ModelRequest
  by: Actor
  idempotencyKey?: string
  ifMatch?: string
  signing?: 'group'
}

/** The stored answer to an Idempotency-Key. */
export interface StoredAnswer {
  /** A text that identifies the request. */
  request: string
  /** The text of the answer; undefined if only the key was claimed. */
  answer: string | undefined
  /** The first and the last seq that the request added to its agent; the last is lower if it added none. */
  seqs?: [first: number, last: number]
  atMs: number
}

/** The state of the model. */
export interface World {
  /** The current time of the server's clock. */
  nowMs: number
  /** The latest time that the clock has shown. */
  latestMs: number
  /** Chains by agent. */
  chains: Map<string, ChainRecord[]>
  /** In order of creation. */
  proposals: Proposal[]
  /** By caller, realm and key. */
  storedAnswers: Map<string, StoredAnswer>
  /** The first agents that claimed public keys, by key. */
  keyOwners: Map<string, string>
  governedSecs: number
}

/** The chain of an existing agent. */
export function chainOf(world: World, agent: string): ChainRecord[] {
  const chain = world.chains.get(agent)
  if (chain === undefined) throw new Error(`Expected agent ${agent} to be there`)
  return chain
}

/** The seq of the next record of an agent. */
export function nextSeq(world: World, agent: string): number {
  return world.chains.get(agent)?.length ?? 0
}

export const dayMs = 86_400_000

/** How long the answer to an Idempotency-Key is stored. */
const storedMs = dayMs

/**
 * The key of a stored answer. Idempotency-Keys belong to their caller and to the agent or other realm; those
 * of ingest streams, which are stored per agent, are separate from others.
 */
export function answerKey({ request, by, idempotencyKey }: Call, realm: string): string {
  const ingests = request.kind.startsWith('ingest') || (request.kind === 'write' && request.via === 'ingest')
  return [by.id, realm, idempotencyKey, ...(ingests ? ['ingest'] : [])].join('\n')
}

/** The stored answer, unless it has expired. */
export function storedAnswer(world: World, key: string): StoredAnswer | undefined {
  const stored = world.storedAnswers.get(key)
  return stored !== undefined && world.nowMs < stored.atMs + storedMs ? stored : undefined
}

/**
 * The possible clock readings of a record that is written now; they can be ahead of a clock that was set
 * back.
 */
export function readingsNow(world: World): { from: string; to: string } {
  return { from: hlcOf(world.nowMs, 'first'), to: hlcOf(world.latestMs, 'last') }
}
