import type { MessagePort } from 'node:worker_threads'
import type { License } from '../../auth/license.js'
import type { Refusal } from '../../base/errors.js'
import type { GateLook, RemoteLogin } from '../../dispatch/duties/remote-gate.js'
import type { ServerLog } from '../../dispatch/duties/server-log.js'
import type { BoundsMemory } from '../../front/limits/bounds.js'
import type { FrontFigures } from '../../front/metrics/request-counts.js'
import type { TicketUse } from '../../front/http/streams/tickets.js'
import type { HashTask, Verification, VerifyTask } from '../../protocol/password-tasks.js'
import type { OtlpCall, OtlpDecoder } from '../../protocol/otlp-tasks.js'
import type { ReadCall } from '../../protocol/reader-tasks.js'
import type { Principal } from '../../front/routes/route.js'
import type { Config } from '../../settings/config.js'
import type { MetricFamily } from '../../wire/metrics.js'
import type { ServerInfo } from '../../wire/server.js'

export interface FrontWorkerData {
  kind: 'front'
  /** Its number, from 1; the main thread is front 0. */
  front: number
  /** The settings, with the number of fronts in force. */
  config: Config
  masterSeed: Uint8Array
  tokenEra: number
  rootKeyDigest: Uint8Array
  shards: number
  stageFolder: string
  hasServerLog: boolean
  /** The connection limit of all fronts together. */
  connectionsMax: number
  /** Absent while the auth add-on is off. */
  auth: { license: License | undefined; mailOn: boolean } | undefined
  /** Memory of `LeaseMemory`; undefined outside a cluster. */
  lease: SharedArrayBuffer | undefined
  /** Memory of `Heartbeat`, `Standing` and `Bounds`. */
  heartbeat: SharedArrayBuffer
  standing: SharedArrayBuffer
  bounds: BoundsMemory
}

/** A call, as an entry of the tables below. */
interface Call<Ask, Found> {
  request: Ask
  reply: Found
}

export interface MainCalls {
  ticketIssue: Call<Principal, string | Refusal>
  ticketRedeem: Call<{ ticket: string; use: TicketUse }, Principal | undefined>
  ticketHold: Call<{ ticket: string; principal: Principal; hold: number }, void>
  ticketRelease: Call<number, void>
  /** Runs a sign-in through the gate, which calls back with the number of the attempt. */
  login: Call<RemoteLogin, Refusal | undefined>
  hashPassword: Call<HashTask, string | Refusal>
  verifyPassword: Call<VerifyTask, Verification | Refusal>
  mailWaits: Call<undefined, void>
  readersFull: Call<undefined, boolean>
  /** A long read, run by the reader pool of the called thread. */
  read: Call<ReadCall, unknown>
  /** Decodes a part of an OTLP request in the pool of the called thread. */
  otlpDecode: Call<OtlpCall, Awaited<ReturnType<OtlpDecoder['decode']>>>
  logHead: Call<Parameters<ServerLog['logHead']>[0], boolean>
  readiness: Call<undefined, Refusal | undefined>
  server: Call<undefined, ServerInfo>
  metrics: Call<undefined, { text: Uint8Array; contentType: string }>
  metricFamilies: Call<readonly string[] | undefined, MetricFamily[]>
  lastUses: Call<readonly string[], number[]>
  /** An uncaught exception: the process ends. */
  failed: Call<string, void>
  /** A message of a shard cannot be read or processed: the process ends. */
  lose: Call<{ shard: number; reason: string }, void>
}

/** A node of a cluster, as its peers reach it. */
export interface PeerAddress {
  node: string
  incarnation: number
  host: string
  port: number
}

/** The identity of this node for its peers, and the list of peers. */
export interface PeerNotices {
  own: { node: string; incarnation: number; key: Uint8Array }
  peers: readonly PeerAddress[]
}

export interface FrontCalls {
  /** Joins the new thread of a shard; answered after the front has loaded the shard's state. */
  join: Call<{ shard: number; port: MessagePort; memory: SharedArrayBuffer; term: number }, void>
  /** Stops sending to the thread of a shard, which is about to leave this node. */
  leaving: Call<number, void>
  /** Sets the other live nodes, to whose shards the front keeps links. */
  peers: Call<PeerNotices, void>
  /** Answered when the front reaches all shards, or after a time limit. */
  untilCurrent: Call<undefined, void>
  /** Accepts a share of the connections; answered with the id of the listener. */
  listen: Call<{ port: number }, number>
  look: Call<number, GateLook>
  verify: Call<number, void>
  figures: Call<undefined, FrontFigures>
  lastUses: Call<readonly string[], number[]>
  /** Ends streams and uploads, and waits up to `timeMs` for pending answers. */
  drain: Call<{ timeMs: number }, void>
  close: Call<undefined, void>
}

export function isFrontWorkerData(value: unknown): value is FrontWorkerData {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'front'
}

/** Calls of a node to a front of another node. */
export type PeerCalls = Pick<FrontCalls, 'look' | 'verify'>
