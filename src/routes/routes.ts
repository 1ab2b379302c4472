import { agentRoutes } from './agents.js'
import { apiKeyRoutes } from './api-keys.js'
import { authRoutes } from './auth/auth-routes.js'
import { docsRoutes } from './docs.js'
import { healthRoutes } from './health.js'
import { ingestRoutes } from './ingest.js'
import { linkPageRoutes } from './link-pages.js'
import { mutationRoutes } from './mutations.js'
import { policyRoutes } from './policies.js'
import { proofRoutes } from './proof.js'
import { queryRoutes } from './query.js'
import { recordRoutes } from './records.js'
import type { Route } from './route.js'
import { exportRoute } from './strand-export.js'
import { streamRoutes } from './stream.js'

/** Every route of the server. What is not here is not there. */
export function allRoutes(defaultAgent: string): readonly Route[] {
  return [
    ...recordRoutes,
    ...mutationRoutes,
    ...queryRoutes,
    ...agentRoutes,
    ...policyRoutes,
    ...ingestRoutes,
    ...streamRoutes,
    exportRoute(defaultAgent),
    ...proofRoutes(defaultAgent),
    ...apiKeyRoutes,
    ...authRoutes,
    ...healthRoutes,
    ...docsRoutes,
    ...linkPageRoutes,
  ]
}
