import { ServerInfo } from '../../wire/server.js'
import { json } from './answers.js'
import { limitedRefusal } from './parameters.js'
import type { HandlerRoute } from './route.js'

/** GET /v1/server: version and settings of the server, for operators, without secrets. */
export const serverRoute: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/v1/server',
  scope: 'admin:*',
  docs: {
    summary: 'Version, shards, features, license and settings, without secrets',
    tag: 'Administration',
    answers: { 200: ServerInfo },
  },
  async handle(request, context) {
    const refusal = limitedRefusal(request)
    if (refusal !== undefined) return refusal
    return json(200, await context.server())
  },
}
