import type { Refusal } from '../../base/errors.js'
import type { RecordAction } from '../../strand/proposal.js'
import { Proposed } from '../../wire/proposals.js'
import { MutationDone } from '../../wire/records.js'
import { authorOf, hashParameter, reachableAgent, withAccess, writeOptions } from './parameters.js'
import type { AddressedCommand, CommandRoute, RouteRequest } from './route.js'

/** DELETE /v1/agents/:agent/records/:hash: adds a tombstone; the record stays in the strand. */
const remove: CommandRoute = {
  kind: 'command',
  method: 'del',
  path: '/v1/agents/:agent/records/:hash',
  scope: 'records:delete',
  users: true,
  errors: ['already_deleted', 'zone_immutable', 'already_erased', 'proposal_open'],
  docs: {
    summary: 'Delete a record (soft)',
    tag: 'Records',
    answers: { 200: MutationDone, 202: Proposed },
    idempotent: true,
    ifMatch: true,
  },
  toCommand: (request) => mutateCommand(request, 'delete'),
}

const restore: CommandRoute = {
  kind: 'command',
  method: 'post',
  path: '/v1/agents/:agent/records/:hash/restore',
  scope: 'records:delete',
  users: true,
  bodyBytesMax: 1_024,
  errors: ['not_deleted', 'zone_immutable', 'already_erased', 'proposal_open'],
  docs: {
    summary: 'Restore a deleted record',
    tag: 'Records',
    answers: { 200: MutationDone, 202: Proposed },
    idempotent: true,
    ifMatch: true,
  },
  toCommand: (request) => mutateCommand(request, 'restore'),
}

/**
 * POST /v1/agents/:agent/records/:hash/erase: erases body and salt; chain, signature and proofs stay valid.
 */
const erase: CommandRoute = {
  kind: 'command',
  method: 'post',
  path: '/v1/agents/:agent/records/:hash/erase',
  scope: 'records:erase',
  users: true,
  bodyBytesMax: 1_024,
  errors: ['zone_immutable', 'already_erased', 'proposal_open'],
  docs: {
    summary: 'Permanently erase the body of a record',
    tag: 'Records',
    answers: { 200: MutationDone, 202: Proposed },
    idempotent: true,
    ifMatch: true,
  },
  toCommand: (request) => mutateCommand(request, 'erase'),
}

function mutateCommand(request: RouteRequest, action: RecordAction): AddressedCommand | Refusal {
  const agent = reachableAgent(request, request.params[0])
  if (typeof agent !== 'string') return agent
  const hash = hashParameter(request.params[1], ':hash')
  if (typeof hash !== 'string') return hash
  const options = writeOptions(request)
  if ('code' in options) return options
  return {
    agent,
    command: withAccess(request, {
      kind: 'recordMutate',
      agent,
      action,
      hash,
      ...authorOf(request),
      options,
    }),
  }
}

export const mutationRoutes = [remove, restore, erase]
