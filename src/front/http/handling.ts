import type { Namespace } from '../../auth/namespace.js'
import type { Refusal } from '../../base/errors.js'
import type { Shards } from '../../dispatch/links/shards.js'
import type { AuthContext } from '../routes/auth-route.js'
import type { Readers } from '../../protocol/reader-tasks.js'
import type { RouteContext } from '../routes/route.js'
import type { AnswerCoder } from './content-coding.js'
import type { ExportSender } from './export.js'
import type { ServedPages } from './file.js'
import type { Opening } from './head.js'
import type { ImportReceiver } from './import/receiver.js'
import type { IngestReceiver } from './ingest/receiver.js'
import type { RequestCounts } from '../metrics/request-counts.js'
import type { StreamHub } from './streams/hub.js'
import type { StreamTickets } from './streams/tickets.js'
import type { OpenTransfers } from '../limits/transfers.js'

/** The parts that handle requests. */
export interface Handling extends Opening {
  shards: Shards
  context: Omit<RouteContext, 'read'>
  readers: Readers
  ingest: IngestReceiver
  exports: ExportSender
  imports: ImportReceiver
  coder: AnswerCoder
  pages: ServedPages
  streams: StreamHub
  tickets: Pick<StreamTickets, 'hold'>
  transfers: OpenTransfers
  counts: RequestCounts
  auth: AuthHandling
  /** Why requests are refused now; undefined while serving. */
  stopping(): Refusal | undefined
  /** Why writes are refused now. */
  writeRefusal(): Refusal | undefined
  onError(error: unknown, requestId: string): void
}

/** The parts that handle auth routes. */
export interface AuthHandling {
  /** Why they are not serving: 404 while the add-on is disabled, 402 without a license. */
  refusal(): Refusal | undefined
  /** The namespace of requests outside organisms. */
  root: Namespace
  context: AuthContext | undefined
  /** Why a namespace cannot be used; undefined without a promise if it is known to exist. */
  missing(namespace: Namespace): undefined | Promise<Refusal | undefined>
}
