import { AuthStatus } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'

/**
 * GET /v1/auth/status: the only auth route that answers while the add-on is disabled (docs/OPERATIONS.md).
 */
const status: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/status',
  caller: 'anyone',
  docs: { summary: 'Whether the auth add-on is enabled', answers: { 200: AuthStatus } },
  whileOff: () => json(200, { enabled: false }),
  handle: () => Promise.resolve(json(200, { enabled: true })),
}

export const statusRoutes = [status]
