import { deriveSeed } from './keys.js'

/** The seed of an agent that was created without one, derived from the master seed. */
export function agentSeed(masterSeed: Uint8Array, name: string): Buffer {
  return deriveSeed(masterSeed, `strandfast/agent-key/v1/${name}`)
}
