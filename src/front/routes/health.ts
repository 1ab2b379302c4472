import { Type } from 'typebox'
import { limits } from '../../base/limits/limits.js'
import { MetricValues } from '../../wire/metrics.js'
import { json } from './answers.js'
import { faultyParameter, limitedRefusal, listQuery } from './parameters.js'
import type { HandlerRoute } from './route.js'

const State = Type.Object({ status: Type.String() })

const alive: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/healthz',
  scope: 'none',
  anyQuery: true,
  docs: { summary: 'Alive', tag: 'Operation', answers: { 200: State } },
  handle: async () => json(200, { status: 'alive' }),
}

/** GET /readyz: every shard is serving; 503 while starting, stopping, recovering or read-only. */
const ready: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/readyz',
  scope: 'none',
  anyQuery: true,
  docs: { summary: 'Serving', tag: 'Operation', answers: { 200: State } },
  handle: async (_request, context) => (await context.readiness()) ?? json(200, { status: 'ready' }),
}

const metrics: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/metrics',
  scope: 'none',
  anyQuery: true,
  docs: {
    summary: 'Prometheus metrics',
    tag: 'Operation',
    answers: { 200: { mediaType: 'text/plain', description: 'Prometheus text' } },
  },
  async handle(_request, context) {
    const { text, contentType } = await context.metrics()
    return { status: 200, body: [text], contentType }
  },
}

/** GET /v1/metrics: the metrics as JSON, for administrators; a proxy may block `/metrics`. */
const metricValues: HandlerRoute = {
  kind: 'handler',
  compressed: true,
  method: 'get',
  path: '/v1/metrics',
  scope: 'admin:*',
  docs: {
    summary: 'The metrics as JSON',
    tag: 'Operation',
    query: {
      names: Type.String({
        description: `Only metrics with these names, separated by commas or in repeated parameters, at most ${limits.metricNamesMax}. Unknown names are ignored`,
      }),
    },
    lists: ['names'],
    answers: { 200: MetricValues },
  },
  async handle(request, context) {
    const refusal = limitedRefusal(request)
    if (refusal !== undefined) return refusal
    const names = listQuery(request, 'names')
    if (names !== undefined && names.length > limits.metricNamesMax)
      return faultyParameter('?names', `Expected at most ${limits.metricNamesMax} names`)
    return json(200, { metrics: await context.metricFamilies(names) })
  },
}

export const healthRoutes = [alive, ready, metrics, metricValues]
