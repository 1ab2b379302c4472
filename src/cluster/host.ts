import type { Refusal } from '../base/errors.js'
import type { ServerLog } from '../dispatch/duties/server-log.js'
import type { TicketUse } from '../front/http/streams/tickets.js'
import type { Principal } from '../front/routes/route.js'
import type { LoginCalls } from '../protocol/login-permits.js'
import type { ReadCall } from '../protocol/reader-tasks.js'
import type { ServerInfo } from '../wire/server.js'

/** The status of the server that runs a node, as far as the node needs it. */
export interface HostStatus {
  readonly readOnly: boolean
  /** Makes the server refuse all requests. */
  refuseAll(refusal: Refusal): void
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

/** A call, as an entry of the tables of calls. */
export interface Call<Request, Reply> {
  request: Request
  reply: Reply
}

/** Calls of a front to the main thread of another node. */
export interface NodeCalls extends LoginCalls {
  ticketRedeem: Call<{ ticket: string; use: TicketUse }, Principal | undefined>
  ticketHold: Call<{ ticket: string; principal: Principal; hold: number }, void>
  ticketRelease: Call<number, void>
  mailWaits: Call<undefined, void>
  /** A long read, run by the reader pool of the called thread. */
  read: Call<ReadCall, unknown>
  logHead: Call<Parameters<ServerLog['logHead']>[0], boolean>
  server: Call<undefined, ServerInfo>
  lastUses: Call<readonly string[], number[]>
  /** A message of a shard cannot be read or processed: the process ends, or the link between two nodes. */
  lose: Call<{ shard: number; reason: string }, void>
}

/** A front whose calls the server answers. */
export interface CallingFront {
  /** Reports a fatal error of the front. */
  failed(error: Error): void
}
