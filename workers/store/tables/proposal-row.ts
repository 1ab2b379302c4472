import {
  anyOf,
  type Check,
  fields,
  isText,
  listOf,
  members,
  oneOf,
  optional,
  isHash,
  isKeyNumber,
} from '../../../src/base/shape.js'
import type { Mutation, ProposalRow, Vote } from '../../../src/protocol/proposal-messages.js'
import { zones } from '../../../src/strand/zone.js'
import { isKeyText, isPolicies } from './row-shape.js'

const isMutation: Check<Mutation> = anyOf(
  fields({ action: oneOf('delete', 'restore', 'erase'), target: isHash, targetSeq: isKeyNumber }),
  fields({ action: oneOf('remove_edge'), dst: isKeyText, edgeType: isKeyText }),
  fields({ action: oneOf('zone'), zone: oneOf(...zones) }),
  fields({ action: oneOf('policies'), policies: isPolicies }),
  members<Extract<Mutation, { action: 'rotate_key' }>>({
    action: oneOf('rotate_key'),
    publicKey: isHash,
    sealedSeed: optional(isText),
    reason: optional(oneOf('compromise')),
  }),
  members<Extract<Mutation, { action: 'make_api_key' }>>({
    action: oneOf('make_api_key'),
    keyId: isKeyText,
    name: isText,
    scopes: listOf(isText),
    agents: listOf(isText),
    madeBy: isText,
    line: isText,
    digest: optional(isText),
    expiresAtMs: optional(isKeyNumber),
  }),
)

/**
 * Whether a stored row is a proposal whose numbers fit the keys of the store. Rows are written by this
 * program, but a data directory can come from elsewhere.
 */
export const isProposalRow: Check<ProposalRow> = members<ProposalRow>({
  agent: isText,
  seq: isKeyNumber,
  hash: isHash,
  mutation: isMutation,
  zone: oneOf(...zones),
  state: oneOf('proposed', 'approved', 'applied', 'rejected', 'cancelled', 'expired'),
  proposer: isText,
  line: optional(isText),
  votes: listOf(
    members<Vote>({
      principal: isText,
      line: optional(isText),
      vote: oneOf('approve', 'reject', 'cancel', 'withdrawn'),
      atMs: isKeyNumber,
      seq: optional(isKeyNumber),
    }),
  ),
  createdAtMs: isKeyNumber,
  importedAtMs: optional(isKeyNumber),
  effectiveAtMs: optional(isKeyNumber),
  expiresAtMs: isKeyNumber,
  endedAtMs: optional(isKeyNumber),
  endSeq: optional(isKeyNumber),
  ofStrand: optional((value): value is true => value === true),
  reason: optional(isText),
})
