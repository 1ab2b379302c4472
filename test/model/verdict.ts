import { anything } from './matching.js'
import type { Expected } from './mutations.js'
import { publicKeyOf } from './public-key.js'
import type { Call, World } from './world.js'

/** The expected new records of an agent's chain. */
export interface Growth {
  agent: string
  records: Expected[]
  /**
   * The signed records of clients: each record, only the last one, or depending on the groups of the server.
   */
  signed: 'each' | 'last' | 'some'
}

/** The expected outcome of a call. */
export type Verdict =
  /** Any one of the codes, because the order of checks is not defined. */
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
      /** The answer is not stored for an Idempotency-Key, because no shard was involved. */
      notStored?: true
    }

/** The verdict on a refused call. */
export function refused(...codes: string[]): Verdict {
  return { kind: 'refused', codes }
}

/** The genesis record of an agent. */
export function genesisOf(
  world: World,
  agent: string,
  { zone, seedHex }: { zone: string; seedHex?: string | undefined },
): Expected {
  const key = seedHex === undefined ? anything : publicKeyOf(seedHex)
  return { type: 'sys/genesis', body: { agent, created_at_ms: world.nowMs, public_key: key, zone } }
}

/** The codes with which a call is refused because of the state of its agent. */
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
