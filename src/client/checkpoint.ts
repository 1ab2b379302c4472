import { type Bytes, type SignatureCheck, sha256, toHex, utf8, fromHex } from './webcrypto.js'

/** What a signed checkpoint says. */
export interface Checkpoint {
  /** `strandfast/<64 hex of the strand>`, which is the signing key's name too. */
  origin: string
  /** Records, genesis counted. */
  size: number
  /** Root over them, 64 hex digits. */
  rootHex: string
}

/** A signed note taken apart; nothing of it is verified yet. */
export interface CheckpointNote extends Checkpoint {
  /** The text that the signatures are over: the note up to the empty line. */
  text: string
  signatures: SignatureLine[]
}

const NOTE =
  /^(([^\s+]+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n)\n((?:\u2014 [^\s+]+ [A-Za-z0-9+/=]+\n){1,16})$/
const KEY_ID_BYTES = 4

/** Takes a checkpoint apart (C2SP tlog-checkpoint, signed-note); undefined when it is not of the form. */
export function parseCheckpoint(note: string): CheckpointNote | undefined {
  const match = NOTE.exec(note)
  if (match === null) return undefined
  const [, text = '', origin = '', sizeText = '', rootText = '', lines = ''] = match
  const root = fromBase64(rootText)
  const size = Number(sizeText)
  if (root === undefined || !Number.isSafeInteger(size)) return undefined
  const signed: SignatureLine[] = []
  for (const line of lines.trimEnd().split('\n')) {
    const signature = parseSignature(line)
    if (signature === undefined) return undefined
    signed.push(signature)
  }
  return { origin, size, rootHex: toHex(root), text, signatures: signed }
}

/**
 * Reads a checkpoint that carries this key's signature under the name of its origin; signatures by other keys are passed
 * over. Undefined when it does not.
 */
export async function verifyCheckpoint(
  note: string,
  publicKey: string,
  signatures: SignatureCheck,
): Promise<Checkpoint | undefined> {
  const parsed = parseCheckpoint(note)
  if (parsed === undefined || !(await isSignedBy(parsed, publicKey, signatures))) return undefined
  const { origin, size, rootHex } = parsed
  return { origin, size, rootHex }
}

/** Whether a note carries this key's signature under the name of its origin. */
export async function isSignedBy(
  { origin, text, signatures: lines }: CheckpointNote,
  publicKey: string,
  signatures: SignatureCheck,
): Promise<boolean> {
  const keyHash = await sha256(utf8(`${origin}\n`), Uint8Array.of(1), fromHex(publicKey))
  const expected = toHex(keyHash.subarray(0, KEY_ID_BYTES))
  for (const { name, keyId, signature } of lines) {
    if (name !== origin || keyId !== expected) continue
    if (await signatures.verifies(publicKey, text, signature)) return true
  }
  return false
}

interface SignatureLine {
  name: string
  keyId: string
  signature: Bytes
}

function parseSignature(line: string): SignatureLine | undefined {
  const [, name = '', signed = ''] = line.split(' ')
  const bytes = fromBase64(signed)
  if (bytes === undefined || bytes.length <= KEY_ID_BYTES) return undefined
  return { name, keyId: toHex(bytes.subarray(0, KEY_ID_BYTES)), signature: bytes.slice(KEY_ID_BYTES) }
}

/** Bytes of base64 in its one exact form; undefined otherwise. */
function fromBase64(text: string): Bytes | undefined {
  try {
    const binary = atob(text)
    if (btoa(binary) !== text) return undefined
    return Uint8Array.from(binary, (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
