import type { MessagePort } from 'node:worker_threads'
import type { License } from '../../auth/license.js'
import type { Refusal } from '../../base/errors.js'
import type { Call, NodeCalls, PeerNotices } from '../../cluster/host.js'
import type { BoundsMemory } from '../../front/limits/bounds.js'
import type { FrontFigures } from '../../front/metrics/request-counts.js'
import type { HashTask, Verification, VerifyTask } from '../../protocol/password-tasks.js'
import type { OtlpCall, OtlpDecoder } from '../../otlp/tasks.js'
import type { Principal } from '../../front/routes/route.js'
import type { Config } from '../../settings/config.js'
import type { MetricFamily } from '../../wire/metrics.js'

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
  /** Memory of `ConfirmedClock`; undefined outside a cluster. */
  clock: SharedArrayBuffer | undefined
  /** Memory of `Heartbeat`, `ServerStatus` and `Bounds`. */
  heartbeat: SharedArrayBuffer
  status: SharedArrayBuffer
  bounds: BoundsMemory
}

export interface MainCalls extends NodeCalls {
  ticketIssue: Call<Principal, string | Refusal>
  hashPassword: Call<HashTask, string | Refusal>
  verifyPassword: Call<VerifyTask, Verification | Refusal>
  /** Decodes a part of an OTLP request in the pool of the called thread. */
  otlpDecode: Call<OtlpCall, Awaited<ReturnType<OtlpDecoder['decode']>>>
  readiness: Call<undefined, Refusal | undefined>
  metrics: Call<undefined, { text: Uint8Array; contentType: string }>
  metricFamilies: Call<readonly string[] | undefined, MetricFamily[]>
  /** An uncaught exception: the process ends. */
  failed: Call<string, void>
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
  figures: Call<undefined, FrontFigures>
  lastUses: Call<readonly string[], number[]>
  /** Ends streams and uploads, and waits up to `timeMs` for pending answers. */
  drain: Call<{ timeMs: number }, void>
  close: Call<undefined, void>
}

export function isFrontWorkerData(value: unknown): value is FrontWorkerData {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'front'
}
