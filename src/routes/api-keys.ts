import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { ApiKeyMadeOutcome } from '../protocol/api-key-messages.js'
import { ApiKeyCreateBody, ApiKeyCreated, ApiKeyDeleted, ApiKeyPage } from '../wire/api-keys.js'
import { reader } from '../wire/validate.js'
import { answerOf, json, replayedHeaders, unexpected } from './answers.js'
import { writeOptions } from './parameters.js'
import type { Answer, HandlerRoute, RouteRequest } from './route.js'

const createBody = reader(ApiKeyCreateBody)

/** 403 for a key that is limited to agents: it could make itself one that is not. */
function limitedRefusal({ principal }: RouteRequest): Refusal | undefined {
  if (principal.agents.length === 0) return undefined
  return refuse('forbidden', 'Expected a key that is not limited to agents')
}

/** POST /v1/admin/api-keys: the key is in this answer and nowhere else; only its SHA-256 is kept. */
const create: HandlerRoute = {
  kind: 'handler',
  method: 'post',
  path: '/v1/admin/api-keys',
  scope: 'admin:*',
  bodyBytesMax: limits.requestBytesMax,
  docs: {
    summary: 'Create a scoped API key',
    tag: 'Administration',
    request: ApiKeyCreateBody,
    answers: { 201: ApiKeyCreated },
    idempotent: true,
  },
  async handle(request, context) {
    const refusal = limitedRefusal(request)
    if (refusal !== undefined) return refusal
    const body = createBody.bytes(request.body)
    if ('code' in body) return body
    const options = writeOptions(request)
    if ('code' in options) return options
    const { name, scopes, agents = [] } = body.value
    const outcome = await context.askFirst({
      kind: 'apiKeyCreate',
      name,
      scopes: [...scopes],
      agents,
      options,
    })
    if (outcome.kind !== 'apiKeyMade') return unexpected(outcome)
    // An answer from before is taken in, too: the thread may have ended before its first one was told.
    if (outcome.live) context.apiKeys.add(outcome.row)
    return created(outcome)
  },
}

function created({ row, key, replayed }: ApiKeyMadeOutcome): Answer {
  const { keyId, name, scopes, agents } = row
  return {
    ...json(201, { key_id: keyId, key, name, scopes, agents }),
    headers: [['Cache-Control', 'no-store'], ...(replayed === true ? replayedHeaders : [])],
  }
}

/** GET /v1/admin/api-keys */
const list: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/v1/admin/api-keys',
  scope: 'admin:*',
  bodyBytesMax: 0,
  docs: { summary: 'List scoped API keys', tag: 'Administration', answers: { 200: ApiKeyPage } },
  async handle(request, context) {
    const refusal = limitedRefusal(request)
    if (refusal !== undefined) return refusal
    const outcome = await context.askFirst({ kind: 'apiKeyList' })
    if (outcome.kind !== 'apiKeys') return unexpected(outcome)
    return json(200, {
      api_keys: outcome.rows.map((row) => ({
        key_id: row.keyId,
        name: row.name,
        scopes: row.scopes,
        agents: row.agents,
        created_at_ms: row.createdAtMs,
      })),
    })
  },
}

/** DELETE /v1/admin/api-keys/:key_id: refused from then on, on open streams too. */
const remove: HandlerRoute = {
  kind: 'handler',
  method: 'del',
  path: '/v1/admin/api-keys/:key_id',
  scope: 'admin:*',
  whileFull: true,
  bodyBytesMax: 0,
  docs: {
    summary: 'Delete a scoped API key',
    tag: 'Administration',
    answers: { 200: ApiKeyDeleted },
    idempotent: true,
  },
  async handle(request, context) {
    const refusal = limitedRefusal(request)
    if (refusal !== undefined) return refusal
    const keyId = request.params[0] ?? ''
    const options = writeOptions(request)
    if ('code' in options) return options
    const outcome = await context.askFirst({ kind: 'apiKeyDelete', keyId, options })
    // Also where it is gone already: the thread may have ended before it told of the deletion.
    const gone =
      outcome.kind === 'reply' || (outcome.kind === 'refused' && outcome.refusal.code === 'not_found')
    if (gone) context.apiKeys.remove(keyId)
    return answerOf(outcome)
  },
}

export const apiKeyRoutes = [create, list, remove]
