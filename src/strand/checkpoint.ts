import { createHash } from 'node:crypto'
import { type KeyPair, signText, verifyText } from './keys.js'

/** What a checkpoint says: the root of the first `size` records of a strand. */
export interface Checkpoint {
  /** `strandfast/<64 hex of the strand>`, which is the signing key's name too. */
  origin: string
  /** Records, genesis counted: the seq of the last one plus 1. */
  size: number
  /** 64 hex digits. */
  rootHex: string
}

/** A signed note taken apart; nothing of it is verified yet. */
export interface CheckpointNote extends Checkpoint {
  /** The text that the signatures are over: the note up to the empty line. */
  text: string
  signatures: { name: string; keyId: string; signature: Buffer }[]
}

const ED25519 = 0x01
const KEY_ID_BYTES = 4
// The em dash that begins a signature line (C2SP signed-note).
const DASH = '\u2014'

/** The origin of a strand's checkpoints. */
export function checkpointOrigin(strand: string): string {
  return `strandfast/${strand}`
}

/** The text that is signed (C2SP tlog-checkpoint): origin, size, root in base64, each line ended by LF. */
export function checkpointText(checkpoint: Checkpoint): string {
  return `${checkpoint.origin}\n${checkpoint.size}\n${Buffer.from(checkpoint.rootHex, 'hex').toString('base64')}\n`
}

/** The signed note (C2SP signed-note): text, empty line, signature line. */
export function signCheckpoint(checkpoint: Checkpoint, keys: KeyPair): string {
  const text = checkpointText(checkpoint)
  const signature = signText(keys.secretKey, text)
  const signed = Buffer.concat([keyId(checkpoint.origin, keys.publicKey), signature]).toString('base64')
  return `${text}\n${DASH} ${checkpoint.origin} ${signed}\n`
}

/** Takes a note apart; undefined when it is not of the form that `signCheckpoint` gives, with 1 to 16 signatures. */
export function parseCheckpoint(note: string): CheckpointNote | undefined {
  const parts =
    /^(([^\s+]+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n)\n((?:\u2014 [^\s+]+ [A-Za-z0-9+/=]+\n){1,16})$/.exec(
      note,
    )
  if (parts === null) return undefined
  const [, text = '', origin = '', sizeText = '', rootText = '', lines = ''] = parts
  const root = Buffer.from(rootText, 'base64')
  const size = Number(sizeText)
  if (root.toString('base64') !== rootText || !Number.isSafeInteger(size)) return undefined
  const signatures: CheckpointNote['signatures'] = []
  for (const line of lines.trimEnd().split('\n')) {
    const signature = parseSignature(line)
    if (signature === undefined) return undefined
    signatures.push(signature)
  }
  return { origin, size, rootHex: root.toString('hex'), text, signatures }
}

/**
 * Checks that a note carries this key's signature under the name of its origin.
 * Signatures by other keys are passed over, as signed-note asks.
 * @returns what the note says, or undefined
 */
export function verifyCheckpoint(note: string, publicKey: string): Checkpoint | undefined {
  const parsed = parseCheckpoint(note)
  if (parsed === undefined) return undefined
  const { origin, size, rootHex, text } = parsed
  const expected = keyId(origin, publicKey).toString('hex')
  const signed = parsed.signatures.some(
    ({ name, keyId: id, signature }) =>
      name === origin && id === expected && verifyText(publicKey, text, signature),
  )
  return signed ? { origin, size, rootHex } : undefined
}

function parseSignature(line: string): { name: string; keyId: string; signature: Buffer } | undefined {
  const [, name = '', signed = ''] = line.split(' ')
  const bytes = Buffer.from(signed, 'base64')
  // Base64 can spell the same bytes in several ways; only the one that is written is read.
  if (bytes.length <= KEY_ID_BYTES || bytes.toString('base64') !== signed) return undefined
  return { name, keyId: bytes.toString('hex', 0, KEY_ID_BYTES), signature: bytes.subarray(KEY_ID_BYTES) }
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
