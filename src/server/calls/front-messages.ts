import type { MessagePort } from 'node:worker_threads'
import type { License } from '../../auth/license.js'
import type { Refusal } from '../../base/errors.js'
import type { GateLook, RemoteLogin } from '../../dispatch/duties/remote-gate.js'
import type { ServerLog } from '../../dispatch/duties/server-log.js'
import type { BoundsMemory } from '../../front/limits/bounds.js'
import type { FrontFigures } from '../../front/metrics/request-counts.js'
import type { TicketUse } from '../../front/http/streams/tickets.js'
import type { HashTask, Verification, VerifyTask } from '../../protocol/password-tasks.js'
import type { ReadCall } from '../../protocol/reader-tasks.js'
import type { Principal } from '../../front/routes/route.js'
import type { Config } from '../../settings/config.js'
import type { MetricFamily } from '../../wire/metrics.js'
import type { ServerInfo } from '../../wire/server.js'

/** What the thread of a front is started with. */
export interface FrontGiven {
  kind: 'front'
  /** Its number, from 1: the main thread is front 0. */
  front: number
  /** Its settings, with the number of fronts in force. */
  config: Config
  masterSeed: Uint8Array
  tokenEra: number
  rootKeyDigest: Uint8Array
  shards: number
  stageFolder: string
  hasServerLog: boolean
  /** How many connections all fronts together can have. */
  connectionsMax: number
  /** Absent while the auth add-on is off. */
  auth: { license: License | undefined; mailOn: boolean } | undefined
  /** Memory of `LeaseMemory`; undefined for a server of its own. */
  lease: SharedArrayBuffer | undefined
  /** Memory of `Heartbeat`, `Standing` and `Bounds`. */
  heartbeat: SharedArrayBuffer
  standing: SharedArrayBuffer
  bounds: BoundsMemory
}

/** One call of the table below. */
interface Call<Ask, Found> {
  ask: Ask
  found: Found
}

/** What a front asks the main thread. */
export interface MainCalls {
  ticketIssue: Call<Principal, string | Refusal>
  ticketRedeem: Call<{ ticket: string; use: TicketUse }, Principal | undefined>
  ticketHold: Call<{ ticket: string; principal: Principal; hold: number }, void>
  ticketRelease: Call<number, void>
  /** Leads a login through the gate, which asks back by the number of the attempt. */
  login: Call<RemoteLogin, Refusal | undefined>
  hashPassword: Call<HashTask, string | Refusal>
  verifyPassword: Call<VerifyTask, Verification | Refusal>
  mailWaits: Call<undefined, void>
  readersFull: Call<undefined, boolean>
  /** A long read, by the pool of the thread that is asked. */
  read: Call<ReadCall, unknown>
  tellHead: Call<Parameters<ServerLog['tell']>[0], boolean>
  readiness: Call<undefined, Refusal | undefined>
  server: Call<undefined, ServerInfo>
  metrics: Call<undefined, { text: Uint8Array; contentType: string }>
  metricFamilies: Call<readonly string[] | undefined, MetricFamily[]>
  lastUses: Call<readonly string[], number[]>
  /** An exception that nobody has caught: the process ends. */
  failed: Call<string, void>
  /** What a shard told cannot be read, or learnt: the process ends. */
  lose: Call<{ shard: number; reason: string }, void>
}

/** A node of a cluster, as its peers reach it. */
export interface PeerPlace {
  node: string
  incarnation: number
  host: string
  port: number
}

/** Who this node is for its peers, and which they are. */
export interface PeersTold {
  own: { node: string; incarnation: number; key: Uint8Array }
  peers: readonly PeerPlace[]
}

/** What the main thread asks a front. */
export interface FrontCalls {
  /** Has it talk to the new thread of a shard; answered once the front has learnt what it must know. */
  join: Call<{ shard: number; port: MessagePort; memory: SharedArrayBuffer; term: number }, void>
  /** Another node is to have a shard: answered once the front sends nothing more to its thread. */
  leaving: Call<number, void>
  /** Which other nodes are alive: it has links to their shards. */
  peers: Call<PeersTold, void>
  /** Answered once it reaches all shards, or after a while. */
  untilCurrent: Call<undefined, void>
  /** Has it take a share of the connections; answered by what names its door. */
  listen: Call<{ port: number }, number>
  look: Call<number, GateLook>
  verify: Call<number, void>
  figures: Call<undefined, FrontFigures>
  lastUses: Call<readonly string[], number[]>
  /** Ends streams and uploads, and waits so long for requests that are being answered. */
  drain: Call<{ timeMs: number }, void>
  close: Call<undefined, void>
}

/** Whether a value is what the thread of a front is given. */
export function isFrontGiven(value: unknown): value is FrontGiven {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'front'
}

/** What a node asks a front of another one. */
export type PeerCalls = Pick<FrontCalls, 'look' | 'verify'>
