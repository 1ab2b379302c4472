import { canonicalJson } from './json.js'
import type { Zone } from './zone.js'

/** The type of record 0 of every strand. */
export const genesisType = 'sys/genesis'

/** The type of the record by which a strand's old key names the new one. */
export const keyRotateType = 'sys/key_rotate'

/** The canonical body of a genesis record: whose strand it is, and the key it begins with. */
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
 * What the new key signs to show that whoever names it holds it, for one strand only.
 * @param strand 64 hex digits
 * @param publicKey the new key, 64 hex digits
 */
export function rotationProofText(strand: string, publicKey: string): string {
  return `strand-key-rotate/v1\n${strand}\n${publicKey}\n`
}

/**
 * The canonical body of a key rotation.
 * @param proofHex the new key's signature over `rotationProofText`, hex
 * @param more members that verifiers pass over
 */
export function keyRotateBody(
  publicKey: string,
  proofHex: string,
  more: Readonly<Record<string, unknown>> = {},
): string {
  return canonicalJson({ ...more, proof: proofHex, public_key: publicKey })
}
