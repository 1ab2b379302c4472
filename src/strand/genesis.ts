import { canonicalJson } from './json.js'
import type { Zone } from './zone.js'

/** The canonical body of a genesis record: the agent and its first key. */
export function genesisBody(genesis: {
  agent: string
  createdAtMs: number
  publicKey: string
  zone: Zone
}): string {
  return canonicalJson({
    agent: genesis.agent,
    created_at_ms: genesis.createdAtMs,
    public_key: genesis.publicKey,
    zone: genesis.zone,
  })
}

/**
 * The canonical body of a key rotation.
 * @param proofHex the signature of the new key over `rotationProofText` (header.ts), hex
 * @param more members that verifiers ignore
 */
export function keyRotateBody(
  publicKey: string,
  proofHex: string,
  more: Readonly<Record<string, unknown>> = {},
): string {
  return canonicalJson({ ...more, proof: proofHex, public_key: publicKey })
}
