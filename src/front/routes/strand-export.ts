import { Type } from 'typebox'
import type { Refusal } from '../../base/errors.js'
import { faultyParameter, integerQuery, reachableAgent, withAccess } from './parameters.js'
import type { ExportRequest, ExportRoute, RouteRequest } from './route.js'

const SEQ_MAX = 2 ** 48 - 1

/** GET /v1/strand/export: a strand as NDJSON that anyone can verify offline (docs/FORMAT.md). */
export function exportRoute(defaultAgent: string): ExportRoute {
  return {
    kind: 'export',
    method: 'get',
    path: '/v1/strand/export',
    scope: 'records:read',
    users: true,
    docs: {
      summary: 'Export a strand for offline verification',
      tag: 'Strands',
      query: {
        agent: Type.String({ default: defaultAgent }),
        from_seq: Type.Integer({ minimum: 0, default: 0 }),
        to_seq: Type.Integer({ minimum: 0, description: 'The last record, inclusive; default: the head' }),
      },
      answers: {
        200: {
          mediaType: 'application/x-ndjson',
          description: 'A manifest, one line per record, and a trailer',
        },
      },
    },
    toExport: (request) => toExport(request, defaultAgent),
  }
}

function toExport(request: RouteRequest, defaultAgent: string): ExportRequest | Refusal {
  const agent = reachableAgent(request, request.query.get('agent') ?? defaultAgent)
  if (typeof agent !== 'string') return agent
  const fromSeq = integerQuery(request, 'from_seq', { min: 0, max: SEQ_MAX, fallback: 0 })
  if (typeof fromSeq !== 'number') return fromSeq
  const toSeq = integerQuery(request, 'to_seq', { min: 0, max: SEQ_MAX, fallback: SEQ_MAX })
  if (typeof toSeq !== 'number') return toSeq
  if (toSeq < fromSeq) return faultyParameter('?to_seq', 'Expected to_seq to be at least from_seq')
  const part = { agent, fromSeq, acceptEncoding: request.headers.acceptEncoding }
  return withAccess(request, request.query.has('to_seq') ? { ...part, toSeq } : part)
}
