import { newPolicyFaults, policyFaults } from '../../auth/row-policy.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { PoliciesBody, PoliciesReplaced } from '../../wire/policies.js'
import { PoliciesProposed, PoliciesShown } from '../../wire/proposals.js'
import { reader } from '../../wire/validate.js'
import { authorOf, reachableAgent, writeOptions } from './parameters.js'
import type { AddressedCommand, CommandRoute, RouteRequest } from './route.js'

const policiesBody = reader(PoliciesBody)

/**
 * PUT /v1/agents/:agent/policies: replaces the row policies of an agent, which also apply to open streams.
 */
const replace: CommandRoute = {
  kind: 'command',
  method: 'put',
  path: '/v1/agents/:agent/policies',
  scope: 'agents:admin',
  errors: ['proposal_open'],
  docs: {
    summary: 'Replace the row policies of an agent',
    tag: 'Agents',
    request: PoliciesBody,
    answers: { 200: PoliciesReplaced, 202: PoliciesProposed },
    idempotent: true,
    ifMatch: true,
  },
  toCommand: replaceCommand,
}

function replaceCommand(request: RouteRequest): AddressedCommand | Refusal {
  const agent = reachableAgent(request, request.params[0])
  if (typeof agent !== 'string') return agent
  const body = policiesBody.bytes(request.body)
  if ('code' in body) return body
  const { policies } = body.value
  const faults = [...policyFaults(policies), ...newPolicyFaults(policies)]
  const [first] = faults
  if (first !== undefined) {
    return refuse('validation_failed', `${first.detail} at ${first.pointer}`, { faults })
  }
  const options = writeOptions(request)
  if ('code' in options) return options
  return { agent, command: { kind: 'policiesSet', agent, policies, ...authorOf(request), options } }
}

const show: CommandRoute = {
  kind: 'command',
  method: 'get',
  path: '/v1/agents/:agent/policies',
  scope: 'agents:admin',
  docs: { summary: 'The row policies of an agent', tag: 'Agents', answers: { 200: PoliciesShown } },
  toCommand(request) {
    const agent = reachableAgent(request, request.params[0])
    return typeof agent === 'string' ? { agent, command: { kind: 'policiesGet', agent } } : agent
  },
}

export const policyRoutes = [replace, show]
