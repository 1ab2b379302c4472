import { limits } from '../../base/limits/limits.js'
import type { ProposedAs } from '../../protocol/proposal-messages.js'
import type { ApiKeyMadeOutcome, ApiKeyRow } from '../../protocol/api-key-messages.js'
import { Type } from 'typebox'
import {
  ApiKeyCreateBody,
  ApiKeyCreated,
  ApiKeyDeleted,
  ApiKeyPage,
  ApiKeyProposed,
} from '../../wire/api-keys.js'
import { reader } from '../../wire/validate.js'
import { Cursor } from '../../wire/primitives.js'
import type { Proposed } from '../../wire/proposals.js'
import { answerOf, json, replayedHeaders, unexpected } from './answers.js'
import {
  badCursor,
  decodeText,
  encodeCursor,
  integerQuery,
  limitedRefusal,
  writeOptions,
} from './parameters.js'
import type { Answer, HandlerRoute } from './route.js'

const createBody = reader(ApiKeyCreateBody)

/**
 * POST /v1/admin/api-keys: the key is only in this answer; the server stores its SHA-256. A key that can
 * decide on proposals is proposed (202) if two admin keys exist.
 */
const create: HandlerRoute = {
  kind: 'handler',
  method: 'post',
  path: '/v1/admin/api-keys',
  scope: 'admin:*',
  docs: {
    summary: 'Create a scoped API key; one that can decide on proposals is proposed if two admin keys exist',
    tag: 'Administration',
    request: ApiKeyCreateBody,
    answers: { 201: ApiKeyCreated, 202: ApiKeyProposed },
    idempotent: true,
  },
  async handle(request, context) {
    const refusal = limitedRefusal(request)
    if (refusal !== undefined) return refusal
    const body = createBody.bytes(request.body)
    if ('code' in body) return body
    const options = writeOptions(request)
    if ('code' in options) return options
    const { name, scopes, agents = [], expires_in_secs: expiresInSecs } = body.value
    const outcome = await context.requestFirst({
      kind: 'apiKeyCreate',
      name,
      scopes: [...scopes],
      agents,
      ...(expiresInSecs !== undefined && { expiresInSecs }),
      maker: request.principal.id,
      options,
    })
    if (outcome.kind !== 'apiKeyMade') return unexpected(outcome)
    // Also for a replayed answer: the shard may have died before it sent a notice of the new key.
    if (outcome.live) context.apiKeys.add(outcome.row)
    return created(outcome)
  },
}

function created({ row, key, proposed, replayed }: ApiKeyMadeOutcome): Answer {
  const { keyId, name, scopes, agents, expiresAtMs = null } = row
  const view = { key_id: keyId, key, name, scopes, agents, expires_at_ms: expiresAtMs }
  const answer = proposed === undefined ? json(201, view) : json(202, { ...view, ...proposedBody(proposed) })
  return replayed === true ? { ...answer, headers: replayedHeaders } : answer
}

function proposedBody({ proposalId, effectiveAtMs }: ProposedAs): Proposed {
  return { proposal_id: proposalId, state: 'proposed', effective_at_ms: effectiveAtMs ?? null }
}

const list: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/v1/admin/api-keys',
  scope: 'admin:*',
  docs: {
    summary: 'List scoped API keys',
    tag: 'Administration',
    query: {
      limit: Type.Integer({ minimum: 1, maximum: limits.pageRowsMax, default: limits.pageRowsMax }),
      cursor: Cursor,
    },
    answers: { 200: ApiKeyPage },
  },
  async handle(request, context) {
    const refusal = limitedRefusal(request)
    if (refusal !== undefined) return refusal
    const bounds = { min: 1, max: limits.pageRowsMax, fallback: limits.pageRowsMax }
    const limit = integerQuery(request, 'limit', bounds)
    if (typeof limit !== 'number') return limit
    const cursor = request.query.get('cursor')
    const after = cursor === null ? '' : decodeText(cursor, 'api-keys')
    if (after === undefined || after.length > KEY_ID_CHARS_MAX) return badCursor
    const outcome = await context.requestFirst({ kind: 'apiKeyList', after, limit })
    if (outcome.kind !== 'apiKeys') return unexpected(outcome)
    const last = outcome.more ? outcome.rows.at(-1)?.keyId : undefined
    const lastUses = await context.apiKeys.lastUses(outcome.rows.map(({ keyId }) => keyId))
    return json(200, {
      api_keys: outcome.rows.map((row, index) => shownKey(row, lastUses[index] ?? 0)),
      next_cursor: last === undefined ? null : encodeCursor('api-keys', [last]),
    })
  },
}

/** More characters than the id of a key has. */
const KEY_ID_CHARS_MAX = 64

function shownKey(row: ApiKeyRow, lastUseAtMs: number): Record<string, unknown> {
  // The stored last use can be a minute old.
  const lastUsedAtMs = Math.max(row.lastUsedAtMs ?? 0, lastUseAtMs)
  return {
    key_id: row.keyId,
    name: row.name,
    scopes: row.scopes,
    agents: row.agents,
    created_at_ms: row.createdAtMs,
    made_by: row.madeBy,
    line: row.line,
    expires_at_ms: row.expiresAtMs ?? null,
    last_used_at_ms: lastUsedAtMs === 0 ? null : lastUsedAtMs,
  }
}

/** DELETE /v1/admin/api-keys/:key_id: deletes a key and ends its open streams. */
const remove: HandlerRoute = {
  kind: 'handler',
  method: 'del',
  path: '/v1/admin/api-keys/:key_id',
  scope: 'admin:*',
  whileFull: true,
  errors: ['not_found'],
  docs: {
    summary: 'Delete a scoped API key',
    path: {
      key_id: Type.String({
        minLength: 1,
        description: 'Id of a scoped key',
        example: 'key_6f1c9a52e07b4d3388a1c2f0',
      }),
    },
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
    const outcome = await context.requestFirst({
      kind: 'apiKeyDelete',
      keyId,
      maker: request.principal.id,
      options,
    })
    // Also if it was already deleted: the shard may have died before it sent a notice of the deletion.
    const isDeleted = outcome.kind === 'reply' || ('code' in outcome && outcome.code === 'not_found')
    if (isDeleted) {
      context.apiKeys.remove(keyId)
      await Promise.all([context.endUploads(keyId), context.endAuthors([keyId])])
    }
    return answerOf(outcome)
  },
}

export const apiKeyRoutes = [create, list, remove]
