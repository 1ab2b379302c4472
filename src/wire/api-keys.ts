import { Type, type Static } from 'typebox'
import { UnixMs } from './primitives.js'

/** What a scoped key can be allowed to do (contract.md 1, Scoped keys). */
export const scopes = [
  'records:read',
  'records:write',
  'ingest',
  'agents:admin',
  'proposals:decide',
  'admin:organisms',
  'admin:*',
] as const

export type Scope = (typeof scopes)[number]

const ScopeList = Type.Array(Type.Enum([...scopes]), { minItems: 1, maxItems: scopes.length })
const AgentList = Type.Array(
  Type.String({
    pattern: '^[A-Za-z0-9_.:-]{0,258}\\*?$',
    minLength: 1,
    description: 'A name, or a beginning and *',
  }),
  { maxItems: 100, description: 'The agents that the key reaches; all when empty' },
)

/** Body of POST /v1/admin/api-keys. */
export const ApiKeyCreateBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 128 }),
    scopes: ScopeList,
    agents: Type.Optional(AgentList),
  },
  { additionalProperties: false },
)

const shown = { key_id: Type.String(), name: Type.String(), scopes: ScopeList, agents: AgentList }

/** Answer to making a key: the key is shown this once. */
export const ApiKeyCreated = Type.Object({ ...shown, key: Type.String() })
export type ApiKeyCreated = Static<typeof ApiKeyCreated>

/** Answer of GET /v1/admin/api-keys. */
export const ApiKeyPage = Type.Object({
  api_keys: Type.Array(Type.Object({ ...shown, created_at_ms: UnixMs })),
})
export type ApiKeyPage = Static<typeof ApiKeyPage>

/** Answer to deleting a key. */
export const ApiKeyDeleted = Type.Object({ deleted: Type.Literal(true), key_id: Type.String() })
export type ApiKeyDeleted = Static<typeof ApiKeyDeleted>
