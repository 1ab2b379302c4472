import { Type, type Static } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { organismIdPattern } from '../strand/organism-id.js'
import { documented, documentedParts } from './documented.js'
import { AgentAddress, AgentName, DisplayName, NextCursor, UnixMs, ZoneName } from './primitives.js'

/* Bodies and answers of the organism routes (docs/adr/0017-organisms.md). */

export const OrganismId = Type.String({
  pattern: organismIdPattern,
  description: 'Id of an organism; its agents are addressed as `<organism_id>::<name>`',
})

const OrganismName = Type.String({ minLength: 1, maxLength: 128, description: 'Display name' })

const organism = { organism_id: 'acme', name: 'Acme', created_at_ms: 1_760_000_000_000 }

/** Body of POST /v1/organisms. */
export const OrganismCreateBody = Type.Object(
  {
    organism_id: Type.Optional(
      Type.String({
        pattern: organismIdPattern,
        description:
          'Id of the organism; its agents are addressed as `<organism_id>::<name>`. Words with a meaning for the server ' +
          'or JavaScript (`default`, `auth`, `server`, `constructor`, `__proto__`, …) are refused, also in upper case',
      }),
    ),
    name: DisplayName,
    agents: Type.Optional(
      Type.Array(Type.Object({ name: AgentName, zone: ZoneName }, { additionalProperties: false }), {
        maxItems: limits.organismAgentsMax,
        description: 'Agents to create with the organism; names must be unique, and not `auth`',
      }),
    ),
  },
  { additionalProperties: false },
)
export type OrganismCreateBody = Static<typeof OrganismCreateBody>
documented('OrganismCreateBody', OrganismCreateBody, {
  organism: { organism_id: 'acme', name: 'Acme', agents: [{ name: 'notes', zone: 'free' }] },
  'generated id': { name: 'Acme' },
})

/** Answer of POST /v1/organisms. */
export const OrganismCreated = Type.Object({
  organism_id: OrganismId,
  name: OrganismName,
  agents: Type.Array(Type.Object({ agent_id: AgentAddress, name: AgentName, zone: ZoneName })),
  created_at_ms: UnixMs,
})
export type OrganismCreated = Static<typeof OrganismCreated>
documented('OrganismCreated', OrganismCreated, {
  organism: { ...organism, agents: [{ agent_id: 'acme::notes', name: 'notes', zone: 'free' }] },
})

/** Answer of GET /v1/organisms/:id. */
export const OrganismView = Type.Object({
  organism_id: OrganismId,
  name: OrganismName,
  agents: Type.Array(AgentAddress, {
    description: `The first ${limits.pageRowsMax} by name; GET /v1/agents?prefix= lists all`,
  }),
  agent_count: Type.Integer({
    minimum: 0,
    description: `Counted up to ${limits.countedRowsMax}, which means that or more`,
  }),
  auth: Type.Boolean({ description: 'Whether it has an auth namespace' }),
  created_at_ms: UnixMs,
})
export type OrganismView = Static<typeof OrganismView>
documented('OrganismView', OrganismView, {
  organism: { ...organism, agents: ['acme::auth', 'acme::notes'], agent_count: 2, auth: true },
})

/** Answer of GET /v1/organisms. */
export const OrganismPage = Type.Object({
  organisms: Type.Array(Type.Object({ organism_id: OrganismId, name: OrganismName, created_at_ms: UnixMs })),
  total: Type.Integer({ minimum: 0 }),
  next_cursor: NextCursor,
})
export type OrganismPage = Static<typeof OrganismPage>
documented('OrganismPage', OrganismPage, { page: { organisms: [organism], total: 1, next_cursor: null } })

/** Answer to the creation of the auth namespace of an organism. */
export const NamespaceInitialised = Type.Object({
  organism_id: OrganismId,
  agent_id: AgentAddress,
  created_at_ms: UnixMs,
})
export type NamespaceInitialised = Static<typeof NamespaceInitialised>

documentedParts({ OrganismId })
documented('NamespaceInitialised', NamespaceInitialised, {
  created: { organism_id: 'acme', agent_id: 'acme::auth', created_at_ms: 1_760_000_060_000 },
})
