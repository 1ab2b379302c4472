import { limits } from '../../base/limits/limits.js'
import { agentChangeRoutes } from './agent-changes.js'
import { agentRoutes } from './agents.js'
import { apiKeyRoutes } from './api-keys.js'
import type { AuthRoute } from './auth-route.js'
import { authRoutes, organismAuthRoutes } from './auth/auth-routes.js'
import { asOfRoute } from './as-of.js'
import { consoleRoutes } from './console.js'
import { docsRoutes } from './docs.js'
import { graphRoutes } from './graph.js'
import { healthRoutes } from './health.js'
import { ingestRoutes } from './ingest.js'
import { mailPageRoutes } from './mail-pages.js'
import { mutationRoutes } from './mutations.js'
import { otlpRoutes } from './otlp.js'
import { organismRoutes } from './organisms.js'
import { policyRoutes } from './policies.js'
import { proofRoutes } from './proof.js'
import { proposalRoutes } from './proposals.js'
import { queryRoutes } from './query.js'
import { recordRoutes } from './records.js'
import type {
  CommandRoute,
  ExportRoute,
  FileRoute,
  HandlerRoute,
  ImportRoute,
  IngestRoute,
  StreamRoute,
} from './route.js'
import { serverRoute } from './server.js'
import { serverLogRoutes } from './server-log.js'
import { exportRoute } from './strand-export.js'
import { importRoute } from './strand-import.js'
import { streamRoutes } from './stream.js'
import { whoamiRoute } from './whoami.js'

/**
 * Every route of the server.
 * @param withConsole false if the console is disabled or not part of the build
 */
export function allRoutes(defaultAgent: string, withConsole = true): readonly Route[] {
  return [
    ...recordRoutes,
    ...mutationRoutes,
    ...queryRoutes,
    ...agentRoutes,
    ...agentChangeRoutes,
    ...proposalRoutes,
    ...policyRoutes,
    ...ingestRoutes,
    ...otlpRoutes,
    ...streamRoutes,
    exportRoute(defaultAgent),
    importRoute(defaultAgent),
    asOfRoute(defaultAgent),
    ...proofRoutes(defaultAgent),
    ...serverLogRoutes,
    ...graphRoutes,
    ...apiKeyRoutes,
    whoamiRoute,
    serverRoute,
    ...organismRoutes,
    ...authRoutes,
    ...organismAuthRoutes,
    ...healthRoutes,
    ...docsRoutes,
    ...(withConsole ? consoleRoutes : []),
    ...mailPageRoutes,
  ]
}

/** The most bytes of a body that a route gets as a whole; 0 if it takes none or streams it. */
export function bodyBytesMaxOf(route: Route): number {
  if (route.kind !== 'command' && route.kind !== 'handler' && route.kind !== 'auth') return 0
  return route.bodyBytesMax ?? (route.docs.request === undefined ? 0 : limits.requestBytesMax)
}

/** A route of any kind. */
export type Route =
  | CommandRoute
  | HandlerRoute
  | IngestRoute
  | ImportRoute
  | ExportRoute
  | FileRoute
  | StreamRoute
  | AuthRoute
