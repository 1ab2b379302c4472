import { anything } from './matching.js'
import type { Expected } from './mutations.js'
import { publicKeyOf } from './public-key.js'
import type { Call, World } from './world.js'

/** Records that an agent's chain is expected to grow by. */
export interface Growth {
  agent: string
  records: Expected[]
  /** Which of the records that clients wrote are signed: each, the last one only, or as the server grouped them. */
  signed: 'each' | 'last' | 'some'
}

/** What is expected of a call. */
export type Verdict =
  /** Any one of the codes: which of several reasons is told is not promised. */
  | { kind: 'refused'; codes: string[] }
  | { kind: 'replayed'; answer: string }
  | {
      kind: 'done'
      status: number
      grows: Growth[]
      /** The answer, once the chains have grown. */
      answer: () => unknown
      /** Changes the world beyond its chains. */
      change?: () => void
      /** An answer without any record that could be kept for an idempotency key. */
      unkept?: true
    }

/** What is expected of a call that is refused. */
export function refused(...codes: string[]): Verdict {
  return { kind: 'refused', codes }
}

/** The record that an agent begins with. */
export function genesisOf(
  world: World,
  agent: string,
  { zone, seedHex }: { zone: string; seedHex?: string | undefined },
): Expected {
  const key = seedHex === undefined ? anything : publicKeyOf(seedHex)
  return { type: 'sys/genesis', body: { agent, created_at_ms: world.nowMs, public_key: key, zone } }
}

/** Why a call to one agent is refused for where the agent stands. */
export function placeRefusals(
  world: World,
  { ifMatch }: Call,
  { agent, emerges }: { agent: string; emerges: boolean },
): string[] {
  const chain = world.chains.get(agent)
  const refusals: string[] = []
  if (ifMatch !== undefined && chain?.at(-1)?.hash !== ifMatch) refusals.push('head_mismatch')
  if (chain === undefined && !emerges) refusals.push('agent_not_found')
  return refusals
}
