import type { Refusal } from '../../base/errors.js'
import { keyPairFromSeed } from '../../strand/keys.js'
import { KeyRotated, Proposed, RotateKeyBody, ZoneBody, ZoneChanged } from '../../wire/proposals.js'
import { reader } from '../../wire/validate.js'
import { answerOf } from './answers.js'
import { authorOf, reachableAgent, writeOptions } from './parameters.js'
import type {
  AddressedCommand,
  Answer,
  CommandRoute,
  HandlerRoute,
  RouteContext,
  RouteRequest,
} from './route.js'

/*
 * Changes of an agent itself. Like mutations of its records, they are applied immediately or by a proposal,
 * depending on the zone of the agent (docs/adr/0014-proposals.md).
 */

const zoneBody = reader(ZoneBody)
const rotateBody = reader(RotateKeyBody)
const emptyBody: { seed_hex?: string; reason?: 'compromise' } = {}

const setZone: CommandRoute = {
  kind: 'command',
  method: 'put',
  path: '/v1/agents/:agent/zone',
  scope: 'agents:admin',
  bodyBytesMax: 1_024,
  errors: ['proposal_open'],
  docs: {
    summary: 'Change the zone of an agent',
    tag: 'Agents',
    request: ZoneBody,
    answers: { 200: ZoneChanged, 202: Proposed },
    idempotent: true,
    ifMatch: true,
  },
  toCommand: zoneCommand,
}

function zoneCommand(request: RouteRequest): AddressedCommand | Refusal {
  const agent = reachableAgent(request, request.params[0])
  if (typeof agent !== 'string') return agent
  const body = zoneBody.bytes(request.body)
  if ('code' in body) return body
  const options = writeOptions(request)
  if ('code' in options) return options
  const { zone } = body.value
  return { agent, command: { kind: 'agentZoneSet', agent, zone, ...authorOf(request), options } }
}

const rotateKey: HandlerRoute = {
  kind: 'handler',
  method: 'post',
  path: '/v1/agents/:agent/rotate-key',
  scope: 'agents:admin',
  bodyBytesMax: 1_024,
  errors: ['key_in_use', 'proposal_open'],
  docs: {
    summary: 'Give an agent another key pair',
    tag: 'Agents',
    request: RotateKeyBody,
    requestOptional: true,
    answers: { 200: KeyRotated, 202: Proposed },
    idempotent: true,
    ifMatch: true,
  },
  handle: rotate,
}

async function rotate(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal> {
  const agent = reachableAgent(request, request.params[0])
  if (typeof agent !== 'string') return agent
  const body = request.body.length === 0 ? { value: emptyBody } : rotateBody.bytes(request.body)
  if ('code' in body) return body
  const options = writeOptions(request)
  if ('code' in options) return options
  const { seed_hex: seedHex, reason } = body.value
  const rotationReason = reason === undefined ? {} : { reason }
  const command = { kind: 'agentKeyRotate' as const, agent, ...authorOf(request), options, ...rotationReason }
  if (seedHex === undefined) return answerOf(await context.request(agent, command))
  const seeded = { ...command, seed: Buffer.from(seedHex, 'hex') }
  // Keys can belong to another shard than agents, so the key is claimed first; but not for a request that
  // will be refused or was answered before.
  const checked = await context.request(agent, { ...seeded, check: true })
  if (checked.kind !== 'done') return answerOf(checked)
  const { publicKey } = keyPairFromSeed(seeded.seed)
  const claim = await context.request(publicKey, { kind: 'keyClaim', publicKey, agent })
  if (claim.kind !== 'done') return answerOf(claim)
  return answerOf(await context.request(agent, seeded))
}

export const agentChangeRoutes = [setZone, rotateKey]
