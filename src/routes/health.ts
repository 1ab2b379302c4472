import { Type, type Static } from 'typebox'
import { json } from './answers.js'
import type { HandlerRoute, RouteContext } from './route.js'

const State = Type.Object({ status: Type.String() })
const Ready = Type.Object({
  status: Type.String(),
  data_open: Type.Optional(
    Type.Literal(true, { description: 'The server asks for no credential (SERVICE_DATA_OPEN)' }),
  ),
})

/** GET /healthz: the process is alive. */
const alive: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/healthz',
  scope: 'none',
  anyQuery: true,
  bodyBytesMax: 0,
  errors: [],
  docs: { summary: 'Alive', tag: 'Operation', answers: { 200: State } },
  handle: async () => json(200, { status: 'alive' }),
}

/** GET /readyz: every shard serves; 503 while starting, stopping, recovering or read-only. */
const ready: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/readyz',
  scope: 'none',
  anyQuery: true,
  bodyBytesMax: 0,
  errors: [],
  docs: { summary: 'Serving', tag: 'Operation', answers: { 200: Ready } },
  handle: async (_request, context) => context.readiness() ?? json(200, readyText(context)),
}

function readyText(context: RouteContext): Static<typeof Ready> {
  return context.server().features.data_open ? { status: 'ready', data_open: true } : { status: 'ready' }
}

/** GET /metrics: Prometheus text. */
const metrics: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/metrics',
  scope: 'none',
  anyQuery: true,
  bodyBytesMax: 0,
  errors: [],
  docs: {
    summary: 'Prometheus metrics',
    tag: 'Operation',
    answers: { 200: { mediaType: 'text/plain', description: 'Prometheus text' } },
  },
  async handle(_request, context) {
    const { text, contentType } = await context.metrics()
    return { status: 200, body: text, contentType }
  },
}

export const healthRoutes = [alive, ready, metrics]
