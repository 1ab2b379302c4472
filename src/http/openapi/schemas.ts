import type { TSchema } from 'typebox'
import { AgentCreateBody, AgentCreated, AgentPage, AgentStatus, ChainHead } from '../../wire/agents.js'
import {
  ApiKeyCreateBody,
  ApiKeyCreated,
  ApiKeyDeleted,
  ApiKeyPage,
  ApiKeyProposed,
  WhoAmI,
} from '../../wire/api-keys.js'
import {
  EdgeAdded,
  EdgeBody,
  EdgePage,
  EdgeRemoved,
  EdgeType,
  GraphEdge,
  TraversalResult,
} from '../../wire/graph.js'
import { StrandImported } from '../../wire/imports.js'
import { IngestManySummary, IngestSummary } from '../../wire/ingest.js'
import {
  AgentAddress,
  Hash,
  HlcText,
  Moment,
  PublicKey,
  Signature,
  UnixMs,
  ZoneName,
} from '../../wire/primitives.js'
import {
  NamespaceInitialised,
  OrganismCreateBody,
  OrganismCreated,
  OrganismId,
  OrganismPage,
  OrganismView,
} from '../../wire/organisms.js'
import { PoliciesBody, PoliciesReplaced, PoliciesShown } from '../../wire/policies.js'
import { Problem } from '../../wire/problem.js'
import {
  KeyRotated,
  ProposalId,
  ProposalPage,
  ProposalView,
  Proposed,
  RotateKeyBody,
  ZoneBody,
  ZoneChanged,
} from '../../wire/proposals.js'
import { ConditionBody, queryBodies, QueryAnswer, QueryBody, QueryResult } from '../../wire/query.js'
import {
  BatchWriteBody,
  BatchWritten,
  MutationDone,
  RecordView,
  RecordWriteBody,
  WriteResponse,
} from '../../wire/records.js'
import { ConsistencyProof, LogConsistency, LoggedHeadProof } from '../../wire/server-log.js'
import { InclusionProof, StrandAsOf, StreamTicket } from '../../wire/strand.js'
import { authSchemas } from './auth.js'

/** The schemas that have a name in the document; any other is written where it is used. */
export const componentSchemas: Readonly<Record<string, TSchema>> = {
  ...authSchemas,
  AgentAddress,
  AgentCreateBody,
  AgentCreated,
  AgentPage,
  AgentStatus,
  ApiKeyCreateBody,
  ApiKeyCreated,
  ApiKeyDeleted,
  ApiKeyPage,
  ApiKeyProposed,
  BatchWriteBody,
  BatchWritten,
  ChainHead,
  ChainHeadQuery: queryBodies.chain_head,
  Condition: ConditionBody,
  ConsistencyProof,
  EdgeAdded,
  EdgeBody,
  EdgePage,
  EdgeRemoved,
  EdgeType,
  GraphEdge,
  Hash,
  HashQuery: queryBodies.hash,
  HlcText,
  InclusionProof,
  IngestManySummary,
  IngestSummary,
  KeyRotated,
  LatestQuery: queryBodies.latest,
  LogConsistency,
  LoggedHeadProof,
  Moment,
  MutationDone,
  NamespaceInitialised,
  OrganismCreateBody,
  OrganismCreated,
  OrganismId,
  OrganismPage,
  OrganismView,
  PoliciesBody,
  PoliciesReplaced,
  PoliciesShown,
  Problem,
  ProposalId,
  ProposalPage,
  ProposalView,
  Proposed,
  PublicKey,
  QueryAnswer,
  QueryBody,
  QueryResult,
  RecordView,
  RecordWriteBody,
  RotateKeyBody,
  Signature,
  StrandAsOf,
  StrandImported,
  StreamTicket,
  TimeRangeQuery: queryBodies.time_range,
  TraversalResult,
  UnixMs,
  WhoAmI,
  WriteResponse,
  ZoneBody,
  ZoneChanged,
  ZoneName,
}

/*
 * A schema is known by its JSON, not by its identity: Type.Optional makes a copy, which is still the same schema to
 * whoever reads the document.
 */
const names = new Map(
  Object.entries(componentSchemas).map(([name, schema]) => [JSON.stringify(schema), name]),
)

/** The name of a schema under components/schemas; undefined when it has none. */
export function componentName(schema: TSchema): string | undefined {
  return names.get(JSON.stringify(schema))
}

/** A schema as it stands in the document: plain JSON Schema 2020-12, with a $ref for each one that has a name. */
export function schemaOf(schema: unknown): unknown {
  const name = names.get(JSON.stringify(schema))
  return name === undefined ? bare(schema) : { $ref: `#/components/schemas/${name}` }
}

/** components/schemas. */
export function schemaComponents(): Record<string, unknown> {
  return Object.fromEntries(Object.entries(componentSchemas).map(([name, schema]) => [name, bare(schema)]))
}

/** The schema itself written out, with a $ref in place of its named parts. */
function bare(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(schemaOf)
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, schemaOf(value)]))
}
