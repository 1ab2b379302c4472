import { NamespaceInitialised } from '../../wire/organisms.js'
import { json } from './answers.js'
import type { AuthRoute } from './auth-route.js'
import { authRoutes } from './auth/auth-routes.js'
import { unexpectedAnswer } from './auth/answers.js'

/*
 * The auth routes of organisms: init, and of every route below /v1/auth its twin in an organism's namespace.
 */

const ROOT = '/v1/auth/'
const ORGANISM = '/v1/organisms/:organism_id/auth/'

/** POST /v1/organisms/:organism_id/auth/init (docs/adr/0017-organisms.md). */
const init: AuthRoute = {
  kind: 'auth',
  method: 'post',
  path: `${ORGANISM}init`,
  scope: 'none',
  caller: 'admin',
  organism: 'any',
  bodyBytesMax: 0,
  errors: ['namespace_exists'],
  docs: {
    summary: 'Give an organism an auth namespace of its own',
    tag: 'Organisms',
    answers: { 201: NamespaceInitialised },
  },
  async handle(request, context) {
    const answer = await context.change(request, { kind: 'namespaceInit' })
    if ('code' in answer || answer.kind !== 'initialised') return unexpectedAnswer(answer)
    const { id, agent } = request.namespace
    const made: NamespaceInitialised = {
      organism_id: id,
      agent_id: agent,
      created_at_ms: answer.createdAtMs,
    }
    return json(201, made)
  },
}

/** The twin of a route of the root namespace. */
function twinOf(route: AuthRoute): AuthRoute {
  return {
    ...route,
    path: ORGANISM + route.path.slice(ROOT.length),
    organism: 'initialised',
    docs: { ...route.docs, tag: 'Organisms' },
  }
}

/** The path of the route of the root namespace whose twin this one is; undefined when it is none. */
export function rootPathOf({ organism, path }: AuthRoute): string | undefined {
  return organism === 'initialised' ? ROOT + path.slice(ORGANISM.length) : undefined
}

/** Every auth route of organisms. */
export const organismAuthRoutes: readonly AuthRoute[] = [
  init,
  ...authRoutes.filter(({ path }) => path.startsWith(ROOT)).map(twinOf),
]
