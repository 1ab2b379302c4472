import { deriveSeed } from './keys.js'

/** The seed of an agent whose creator named none, derived from the master seed (contract.md 1, Identity). */
export function agentSeed(masterSeed: Uint8Array, name: string): Buffer {
  return deriveSeed(masterSeed, `strandfast/agent-key/v1/${name}`)
}
