import { Jwks } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'

/** Seconds for which the keys can be cached: the next key is published long before it signs. */
const MAX_AGE_SECS = 300

function jwksRoute(path: string): AuthRouteEntry {
  return {
    method: 'get',
    path,
    caller: 'anyone',
    docs: { summary: 'The public keys that tokens are verified with (RFC 7517)', answers: { 200: Jwks } },
    async handle(request, context) {
      const answer = json(200, { keys: await context.tokens.publicKeys(request.namespace) })
      return { ...answer, headers: [['Cache-Control', `public, max-age=${MAX_AGE_SECS}`]] }
    },
  }
}

/** GET /v1/auth/jwks, and the path where libraries expect it. */
export const jwksRoutes = [jwksRoute('/v1/auth/jwks'), jwksRoute('/.well-known/jwks.json')]
