/**
 * What the new key signs to prove that whoever names it has it, for one strand only.
 * @param strand 64 hex digits
 * @param publicKey the new key, 64 hex digits
 */
export function rotationProofText(strand: string, publicKey: string): string {
  return `strand-key-rotate/v1\n${strand}\n${publicKey}\n`
}
