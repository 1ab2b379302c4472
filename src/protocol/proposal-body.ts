import type { Policy } from '../auth/row-policy.js'
import type { EdgeAction, KeyAction, RecordAction } from '../strand/proposal.js'
import type { Zone } from '../strand/zone.js'
import type { KeyMutation, Mutation } from './proposal-messages.js'

/**
 * What a proposal would change, as it stands in the body of its `sys/proposal` record (docs/FORMAT.md,
 * Proposals). Proposals are shown from this alone, so that no member of the signed record can be missing.
 */
export type MutationBody =
  | { action: RecordAction; target: string; target_seq: number }
  | { action: EdgeAction; edge_type: string; dst: string }
  | { action: 'zone'; zone: Zone }
  | { action: 'policies'; policies: Policy[] }
  | { action: 'rotate_key'; public_key: string; reason?: 'compromise' }
  | ({ action: KeyAction } & KeyBody)

/**
 * An API key that is to be created. The record names the lineage of the proposer; that of the key is recorded
 * when the key is created. The name of the key is free text that could not be erased, so it is not recorded.
 */
interface KeyBody {
  key_id: string
  scopes: string[]
  agents: string[]
  made_by: string
  /** `expires_at_ms` of the record is that of the proposal. */
  key_expires_at_ms: number | null
}

/** The members of a mutation in its record: all of it but secrets. */
export function bodyOfMutation(mutation: Mutation): MutationBody {
  switch (mutation.action) {
    case 'zone':
      return { action: mutation.action, zone: mutation.zone }
    case 'policies':
      return { action: mutation.action, policies: [...mutation.policies] }
    case 'remove_edge':
      return { action: mutation.action, edge_type: mutation.edgeType, dst: mutation.dst }
    case 'rotate_key': {
      const { action, publicKey, reason } = mutation
      return { action, public_key: publicKey, ...(reason !== undefined && { reason }) }
    }
    case 'make_api_key':
      return { action: mutation.action, ...keyBodyOf(mutation) }
    default:
      return { action: mutation.action, target: mutation.target, target_seq: mutation.targetSeq }
  }
}

function keyBodyOf({ keyId, scopes, agents, madeBy, expiresAtMs }: KeyMutation): KeyBody {
  return { key_id: keyId, scopes, agents, made_by: madeBy, key_expires_at_ms: expiresAtMs ?? null }
}

/** The mutation in the body of a record, without its secrets. */
export function mutationOfBody(body: MutationBody): Mutation {
  switch (body.action) {
    case 'zone':
    case 'policies':
      return body
    case 'remove_edge':
      return { action: body.action, edgeType: body.edge_type, dst: body.dst }
    case 'rotate_key': {
      const { action, public_key: publicKey, reason } = body
      return { action, publicKey, ...(reason !== undefined && { reason }) }
    }
    case 'make_api_key':
      throw new Error('The row of a proposal about an API key must not be replaced')
    default:
      return { action: body.action, target: body.target, targetSeq: body.target_seq }
  }
}
