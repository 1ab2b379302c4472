import type { AuthRoute, AuthRouteEntry } from '../auth-route.js'
import { jwksRoutes } from './jwks.js'
import { keyRoutes } from './keys.js'
import { loginRoutes } from './login.js'
import { logoutRoutes } from './logout.js'
import { magicLinkRoutes } from './magic-link.js'
import { meRoutes } from './me.js'
import { passkeyRoutes } from './passkeys.js'
import { oauthRoutes } from './oauth.js'
import { passwordRoutes } from './password.js'
import { refreshRoutes } from './refresh.js'
import { registerRoutes } from './register.js'
import { revokeRoutes } from './revoke.js'
import { sessionRoutes } from './sessions.js'
import { statusRoutes } from './status.js'
import { userRoutes } from './users.js'
import { verifyEmailRoutes } from './verify-email.js'
import { NamespaceInitialised } from '../../../wire/organisms.js'
import { json } from '../answers.js'
import { unexpectedAnswer } from './answers.js'

/** Every route of the auth add-on, for the root namespace. */
export const authRoutes: readonly AuthRoute[] = [
  ...statusRoutes,
  ...registerRoutes,
  ...loginRoutes,
  ...refreshRoutes,
  ...logoutRoutes,
  ...revokeRoutes,
  ...meRoutes,
  ...sessionRoutes,
  ...magicLinkRoutes,
  ...verifyEmailRoutes,
  ...passwordRoutes,
  ...passkeyRoutes,
  ...oauthRoutes,
  ...userRoutes,
  ...jwksRoutes,
  ...keyRoutes,
].map((entry) => routeOf(entry, 'Authentication'))

function routeOf(entry: AuthRouteEntry, tag: string): AuthRoute {
  return { kind: 'auth', scope: 'none', ...entry, docs: { ...entry.docs, tag } }
}

/* The auth routes of organisms: init, and a counterpart of every route below /v1/auth. */

const ROOT = '/v1/auth/'
const ORGANISM = '/v1/organisms/:organism_id/auth/'

/** POST /v1/organisms/:organism_id/auth/init (docs/adr/0017-organisms.md). */
const init: AuthRouteEntry = {
  method: 'post',
  path: `${ORGANISM}init`,
  caller: 'admin',
  organism: 'any',
  errors: ['namespace_exists'],
  docs: {
    summary: 'Create the auth namespace of an organism',
    answers: { 201: NamespaceInitialised },
  },
  async handle(request, context) {
    const answer = await context.change(request, { kind: 'namespaceInit' })
    if ('code' in answer || answer.kind !== 'initialised') return unexpectedAnswer(answer)
    const { id, agent } = request.namespace
    const initialised: NamespaceInitialised = {
      organism_id: id,
      agent_id: agent,
      created_at_ms: answer.createdAtMs,
    }
    return json(201, initialised)
  },
}

/** The counterpart of a route of the root namespace. */
function twinOf(route: AuthRoute): AuthRoute {
  const path = ORGANISM + route.path.slice(ROOT.length)
  return routeOf({ ...route, path, organism: 'initialised' }, 'Organisms')
}

/** The path of the corresponding route of the root namespace; undefined if there is none. */
export function rootPathOf({ organism, path }: AuthRoute): string | undefined {
  return organism === 'initialised' ? ROOT + path.slice(ORGANISM.length) : undefined
}

export const organismAuthRoutes: readonly AuthRoute[] = [
  routeOf(init, 'Organisms'),
  ...authRoutes.filter(({ path }) => path.startsWith(ROOT)).map(twinOf),
]
