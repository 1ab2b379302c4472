/**
 * What the new key signs to show that whoever names it holds it, for one strand only.
 * @param strand 64 hex digits
 * @param publicKey the new key, 64 hex digits
 */
export function rotationProofText(strand: string, publicKey: string): string {
  return `strand-key-rotate/v1\n${strand}\n${publicKey}\n`
}
