import type { Refusal } from '../../base/errors.js'
import type { AgentCreate } from '../../protocol/messages.js'
import type { WriteOptions } from '../../protocol/command-options.js'
import { keyPairFromSeed } from '../../strand/keys.js'
import type { Zone } from '../../strand/zone.js'
import { answerOf, unexpected } from './answers.js'
import type { Answer, RouteContext, RouteRequest } from './route.js'

/*
 * How routes make an agent by name: those of agents, and those of organisms.
 */

/** An agent that a caller asks for. */
export interface AgentRequest {
  /** The address that it gets. */
  agent: string
  zone: Zone
  /** Its Ed25519 seed, 64 hex digits; derived from the master seed when absent. */
  seedHex?: string | undefined
  options: WriteOptions
}

/** Makes an agent and answers as POST /v1/agents does; 409 agent_exists, key_in_use. */
export async function createAgent(
  context: RouteContext,
  { agent, zone, seedHex, options }: AgentRequest,
): Promise<Answer | Refusal> {
  const command: AgentCreate = { kind: 'agentCreate', agent, zone, options }
  if (seedHex !== undefined) {
    command.seed = Buffer.from(seedHex, 'hex')
    // Keys are owned by another shard than agents, so a key is claimed first; a claim without its agent does no harm.
    const { publicKey } = keyPairFromSeed(command.seed)
    const existing = await context.ask(agent, { kind: 'agentHead', agent })
    const claims = 'code' in existing && existing.code === 'agent_not_found'
    if (claims) {
      const claim = await context.ask(publicKey, { kind: 'keyClaim', publicKey, agent })
      if (claim.kind !== 'done') return answerOf(claim)
    }
  }
  return answerOf(await context.ask(agent, command))
}

/**
 * Ties the Idempotency-Key of a request to its body: the same key for an agent of another name would be another
 * request, because keys belong to agents otherwise.
 * @param realm what the key belongs to: requests in different realms may have the same key
 * @returns 24 hex digits of chance, the same whenever the request comes again; empty without a key; 422
 * idempotency_key_reused
 */
export async function claimRequest(
  { body }: RouteRequest,
  { options: { idempotency }, realm }: { options: WriteOptions; realm: string },
  context: RouteContext,
): Promise<string | Refusal> {
  if (idempotency === undefined) return ''
  const agent = `${realm}\n${idempotency.key}`
  const outcome = await context.ask(agent, { kind: 'requestClaim', agent, body, options: { idempotency } })
  return outcome.kind === 'claimed' ? outcome.drawn : unexpected(outcome)
}
