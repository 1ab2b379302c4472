import { createHash } from 'node:crypto'
import { type KeyPair, signText } from './keys.js'

/** The tree root of the first `size` records of a strand. */
export interface Checkpoint {
  /** `strandfast/<64 hex of the strand>`, which is also the name of the signing key. */
  origin: string
  /** Records including genesis: the seq of the last one plus 1. */
  size: number
  /** 64 hex digits. */
  rootHex: string
}

const ED25519 = 0x01
const KEY_ID_BYTES = 4
// An em dash begins a signature line (C2SP signed-note).
const DASH = '\u2014'

export function checkpointOrigin(strand: string): string {
  return `strandfast/${strand}`
}

/** The signed text (C2SP tlog-checkpoint): origin, size and base64 root, each line ended by LF. */
export function checkpointText(checkpoint: Checkpoint): string {
  return `${checkpoint.origin}\n${checkpoint.size}\n${Buffer.from(checkpoint.rootHex, 'hex').toString('base64')}\n`
}

/** Signs a checkpoint: text, empty line, signature line (C2SP signed-note). */
export function signCheckpoint(checkpoint: Checkpoint, keys: KeyPair): string {
  const text = checkpointText(checkpoint)
  const signature = signText(keys.secretKey, text)
  const signed = Buffer.concat([keyId(checkpoint.origin, keys.publicKey), signature]).toString('base64')
  return `${text}\n${DASH} ${checkpoint.origin} ${signed}\n`
}

/** The first four bytes of SHA-256(name ‖ LF ‖ 0x01 ‖ public key). */
function keyId(name: string, publicKey: string): Buffer {
  const key = Buffer.from(publicKey, 'hex')
  return createHash('sha256')
    .update(`${name}\n`)
    .update(Buffer.of(ED25519))
    .update(key)
    .digest()
    .subarray(0, KEY_ID_BYTES)
}
