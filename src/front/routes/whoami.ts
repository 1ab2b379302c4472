import { scopes, WhoAmI } from '../../wire/api-keys.js'
import { json } from './answers.js'
import type { HandlerRoute, Principal } from './route.js'

/** GET /v1/whoami: the principal of the credential, and its permissions. */
export const whoamiRoute: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/v1/whoami',
  scope: 'any',
  users: true,
  docs: {
    summary: 'The principal of the credential, and its permissions',
    tag: 'Administration',
    answers: { 200: WhoAmI },
  },
  async handle({ principal }) {
    return json(200, describe(principal))
  },
}

function describe({ id, scopes: granted, agents, key, user }: Principal): WhoAmI {
  const claims = user?.claims
  const expiresAtMs = claims === undefined ? key?.row.expiresAtMs : claims.exp * 1_000
  return {
    principal: id,
    kind: user !== undefined ? 'user' : key !== undefined ? 'api_key' : 'root',
    scopes: scopes.filter((scope) => granted.has(scope)),
    agents: [...agents],
    name: key?.row.name ?? null,
    made_by: key?.row.madeBy ?? null,
    created_at_ms: key?.row.createdAtMs ?? null,
    expires_at_ms: expiresAtMs ?? null,
    user:
      user === undefined || claims === undefined
        ? null
        : { user_id: claims.sub, namespace: user.namespace.id, email: claims.email },
  }
}
