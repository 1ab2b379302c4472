import { createHash, randomBytes } from 'node:crypto'
import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { ApiKeyRow } from '../protocol/messages.js'
import { ApiKeyCreateBody, ApiKeyCreated, ApiKeyDeleted, ApiKeyPage } from '../wire/api-keys.js'
import { reader } from '../wire/validate.js'
import { json, unexpected } from './answers.js'
import type { HandlerRoute, RouteRequest } from './route.js'

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
  },
  async handle(request, context) {
    const refusal = limitedRefusal(request)
    if (refusal !== undefined) return refusal
    const body = createBody.bytes(request.body)
    if ('code' in body) return body
    const { name, scopes, agents = [] } = body.value
    const key = `sf_key_${randomBytes(32).toString('base64url')}`
    const row: ApiKeyRow = {
      keyId: `key_${randomBytes(12).toString('hex')}`,
      name,
      scopes: [...scopes],
      agents,
      digest: createHash('sha256').update(key).digest('hex'),
      createdAtMs: context.nowMs(),
    }
    const outcome = await context.askFirst({ kind: 'apiKeyCreate', row })
    if (outcome.kind !== 'done') return unexpected(outcome)
    context.apiKeys.add(row)
    const answer = json(201, { key_id: row.keyId, key, name, scopes, agents })
    return { ...answer, headers: [['Cache-Control', 'no-store']] }
  },
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
  docs: { summary: 'Delete a scoped API key', tag: 'Administration', answers: { 200: ApiKeyDeleted } },
  async handle(request, context) {
    const refusal = limitedRefusal(request)
    if (refusal !== undefined) return refusal
    const keyId = request.params[0] ?? ''
    const outcome = await context.askFirst({ kind: 'apiKeyDelete', keyId })
    if (outcome.kind !== 'done') return unexpected(outcome)
    context.apiKeys.remove(keyId)
    return json(200, { deleted: true, key_id: keyId })
  },
}

export const apiKeyRoutes = [create, list, remove]
