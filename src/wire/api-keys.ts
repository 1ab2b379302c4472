import { Type, type Static } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { documented } from './documented.js'
import { DisplayName, NextCursor, UnixMs } from './primitives.js'
import { Proposed } from './proposals.js'

/** Permissions of API keys. */
export const scopes = [
  'records:read',
  'records:write',
  'records:delete',
  'records:erase',
  'ingest',
  'agents:admin',
  'proposals:decide',
  'admin:organisms',
  'admin:*',
] as const

export type Scope = (typeof scopes)[number]

/** What each scope allows, for the OpenAPI document and docs/scopes.md. */
export const scopeDescriptions: Record<Scope, string> = {
  'records:read': 'read records, streams, exports and proofs; list agents; read the graph',
  'records:write': 'append records and edges, but delete nothing',
  'records:delete': 'delete and restore records, remove edges (by the rule of the zone)',
  'records:erase': 'destroy the bodies of records (by the rule of the zone)',
  ingest: 'append records through the ingest routes, but delete nothing',
  'agents:admin': 'create agents, change their zone, policies and key, import strands',
  'proposals:decide': 'list, approve and reject proposals',
  'admin:organisms': 'create organisms and their agents, and manage their users',
  'admin:*': 'everything that the scopes above allow, and API keys, users, metrics and server information',
}

const ScopeList = Type.Array(Type.Enum([...scopes]), {
  minItems: 1,
  maxItems: scopes.length,
  description: `What the key may do. ${scopes.map((scope) => `${scope}: ${scopeDescriptions[scope]}`).join('. ')}`,
})
const AgentList = Type.Array(
  Type.String({
    pattern: '^[A-Za-z0-9_.:-]{0,258}\\*?$',
    minLength: 1,
    description: 'A name, or a prefix and *',
  }),
  { maxItems: 100, description: 'The agents that the key can reach; all if empty' },
)

const key = {
  key_id: 'key_6f1c9a52e07b4d3388a1c2f0',
  name: 'Sensor gateway',
  scopes: ['ingest'],
  agents: ['sensor-*'],
  expires_at_ms: null,
}

/** Body of POST /v1/admin/api-keys. */
export const ApiKeyCreateBody = Type.Object(
  {
    name: DisplayName,
    scopes: ScopeList,
    agents: Type.Optional(AgentList),
    expires_in_secs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.apiKeyExpirySecsMax,
        description: 'Never if absent; not later than the key that creates it',
      }),
    ),
  },
  { additionalProperties: false },
)
export type ApiKeyCreateBody = Static<typeof ApiKeyCreateBody>
documented('ApiKeyCreateBody', ApiKeyCreateBody, {
  key: { name: 'Sensor gateway', scopes: ['ingest'], agents: ['sensor-*'] },
  'for a day': { name: 'Auditor', scopes: ['records:read'], expires_in_secs: 86_400 },
})

const whenExpires = Type.Union([UnixMs, Type.Null()], { description: 'Null for never' })

const shown = {
  key_id: Type.String(),
  name: Type.String(),
  scopes: ScopeList,
  agents: AgentList,
  expires_at_ms: whenExpires,
}

const CreatedBy = Type.String({ description: 'root, or the id of the key that created it' })

/** Answer of POST /v1/admin/api-keys, the only one that contains the key. */
export const ApiKeyCreated = Type.Object({ ...shown, key: Type.String() })
export type ApiKeyCreated = Static<typeof ApiKeyCreated>
documented('ApiKeyCreated', ApiKeyCreated, {
  key: { ...key, key: 'sf_key_3q2-7wAAAAAAEXAMPLEAAAAAAAAAAAAAAAAAAAAAAAA' },
})

/**
 * Answer to the creation of a key that may decide proposals: the key is valid once this proposal is applied.
 */
export const ApiKeyProposed = Type.Object({ ...shown, key: Type.String(), ...Proposed.properties })
export type ApiKeyProposed = Static<typeof ApiKeyProposed>
documented('ApiKeyProposed', ApiKeyProposed, {
  key: {
    ...key,
    scopes: ['proposals:decide'],
    key: 'sf_key_3q2-7wAAAAAAEXAMPLEAAAAAAAAAAAAAAAAAAAAAAAA',
    proposal_id: 'p_7_server::audit',
    state: 'proposed',
    effective_at_ms: null,
  },
})

/** Answer of GET /v1/admin/api-keys. */
export const ApiKeyPage = Type.Object({
  api_keys: Type.Array(
    Type.Object({
      ...shown,
      created_at_ms: UnixMs,
      made_by: CreatedBy,
      line: Type.String({
        description: 'The lineage: the first key in the chain of keys that created one another',
      }),
      last_used_at_ms: Type.Union([UnixMs, Type.Null()], { description: 'Null for never' }),
    }),
  ),
  next_cursor: NextCursor,
})
export type ApiKeyPage = Static<typeof ApiKeyPage>
documented('ApiKeyPage', ApiKeyPage, {
  keys: {
    api_keys: [
      {
        ...key,
        created_at_ms: 1_760_000_000_000,
        made_by: 'root',
        line: key.key_id,
        last_used_at_ms: 1_760_000_360_000,
      },
    ],
    next_cursor: null,
  },
})

/** Answer to the deletion of a key. */
export const ApiKeyDeleted = Type.Object({ deleted: Type.Literal(true), key_id: Type.String() })
export type ApiKeyDeleted = Static<typeof ApiKeyDeleted>
documented('ApiKeyDeleted', ApiKeyDeleted, { deleted: { deleted: true, key_id: key.key_id } })

/** Answer of GET /v1/whoami. */
export const WhoAmI = Type.Object({
  principal: Type.String({ description: 'root, the id of a scoped key, or user:<namespace>:<user_id>' }),
  kind: Type.Enum(['root', 'api_key', 'user']),
  scopes: Type.Array(Type.Enum([...scopes]), {
    description: 'Permissions of a key; those of a user follow from row policies',
  }),
  agents: AgentList,
  name: Type.Union([Type.String(), Type.Null()]),
  made_by: Type.Union([CreatedBy, Type.Null()]),
  created_at_ms: Type.Union([UnixMs, Type.Null()]),
  expires_at_ms: whenExpires,
  user: Type.Union([
    Type.Object({
      user_id: Type.String(),
      namespace: Type.String({ description: 'The id of an organism; empty for the root namespace' }),
      email: Type.String(),
    }),
    Type.Null(),
  ]),
})
export type WhoAmI = Static<typeof WhoAmI>
documented('WhoAmI', WhoAmI, {
  key: {
    principal: key.key_id,
    kind: 'api_key',
    scopes: key.scopes,
    agents: key.agents,
    name: key.name,
    made_by: 'root',
    created_at_ms: 1_760_000_000_000,
    expires_at_ms: null,
    user: null,
  },
})
