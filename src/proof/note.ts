import { verifies } from './ed25519.js'
import { fromHex, joined, toHex, utf8 } from './hex.js'
import { type Check, hashOf } from './job.js'

/** What a signed checkpoint says. */
export interface Checkpoint {
  /** `strandfast/<64 hex of the strand>`, which is also the signing key's name. */
  origin: string
  /** Records, genesis counted. */
  size: number
  /** Root over them, 64 hex digits. */
  rootHex: string
}

/** A parsed signed note; nothing of it is verified yet. */
export interface CheckpointNote extends Checkpoint {
  /** The text that the signatures are over: the note up to the empty line. */
  text: string
  signatures: { name: string; keyId: string; signature: string }[]
}

/**
 * A name: no plus, no controls and no Unicode white space. The characters are listed, since the shorthand of regular
 * expressions means other characters in each language.
 */
const NAME =
  '[^+\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff]+'
/** The most signatures of a note, as signed-note asks of its readers. */
const SIGNATURES_MAX = 16
const NOTE = new RegExp(
  `^((${NAME})\\n(0|[1-9][0-9]{0,15})\\n([A-Za-z0-9+/]{43}=)\\n)\\n((?:\\u2014 ${NAME} [A-Za-z0-9+/=]+\\n){1,${SIGNATURES_MAX}})$`,
)
const STRAND_ORIGIN = /^strandfast\/([0-9a-f]{64})$/
const KEY_ID_BYTES = 4
const ED25519 = Uint8Array.of(1)

/** Parses a checkpoint (C2SP tlog-checkpoint, signed-note); undefined when it does not have that form. */
export function parseCheckpoint(note: string): CheckpointNote | undefined {
  const match = NOTE.exec(note)
  if (match === null || /\p{Surrogate}/u.test(note)) return undefined
  const [, text = '', origin = '', sizeText = '', rootText = '', lines = ''] = match
  const root = fromBase64(rootText)
  const size = Number(sizeText)
  if (root === undefined || !Number.isSafeInteger(size)) return undefined
  const signatures: CheckpointNote['signatures'] = []
  for (const line of lines.slice(0, -1).split('\n')) {
    const signature = parseSignature(line)
    if (signature === undefined) return undefined
    signatures.push(signature)
  }
  return { origin, size, rootHex: toHex(root), text, signatures }
}

/**
 * A note with the signatures of an earlier one too, where both are of the same checkpoint: cosignatures of other witnesses
 * are not made again. The earlier ones come first; those beyond the most that a note can have are left out.
 */
export function withSignaturesOf(earlier: string, note: string): string {
  const text = parseCheckpoint(note)?.text
  if (text === undefined || parseCheckpoint(earlier)?.text !== text) return note
  const lines = [earlier, note].flatMap((one) => one.slice(text.length + 1).match(/.+\n/g) ?? [])
  return `${text}\n${[...new Set(lines)].slice(0, SIGNATURES_MAX).join('')}`
}

/** The strand that a checkpoint is of; undefined where its origin names none. */
export function strandOf({ origin }: Checkpoint): string | undefined {
  return STRAND_ORIGIN.exec(origin)?.[1]
}

/**
 * Reads a checkpoint that carries this key's signature under the name of its origin; signatures by other keys are
 * ignored, as signed-note asks. Undefined when it does not.
 */
export function* verifyCheckpoint(note: string, publicKey: string): Check<Checkpoint | undefined> {
  const parsed = parseCheckpoint(note)
  if (parsed === undefined || !(yield* isSignedBy(parsed, publicKey))) return undefined
  const { origin, size, rootHex } = parsed
  return { origin, size, rootHex }
}

/** Whether a note carries this key's signature under the name of its origin. */
export function* isSignedBy(note: CheckpointNote, publicKey: string): Check<boolean> {
  const { origin, text, signatures } = note
  const named = signatures.filter(({ name }) => name === origin)
  if (named.length === 0 || !/^[0-9a-f]{64}$/.test(publicKey)) return false
  const keyHash = yield* hashOf(joined(utf8(`${origin}\n`), ED25519, fromHex(publicKey)))
  const expected = keyHash.slice(0, 2 * KEY_ID_BYTES)
  for (const { keyId, signature } of named) {
    if (keyId === expected && (yield* verifies(publicKey, utf8(text), signature))) return true
  }
  return false
}

function parseSignature(line: string): CheckpointNote['signatures'][number] | undefined {
  const [, name = '', signed = ''] = line.split(' ')
  const bytes = fromBase64(signed)
  if (bytes === undefined || bytes.length <= KEY_ID_BYTES) return undefined
  const hex = toHex(bytes)
  return { name, keyId: hex.slice(0, 2 * KEY_ID_BYTES), signature: hex.slice(2 * KEY_ID_BYTES) }
}

/** The bytes of base64 text; undefined unless it is exactly what an encoder writes. */
function fromBase64(text: string): Uint8Array | undefined {
  try {
    const binary = atob(text)
    if (btoa(binary) !== text) return undefined
    return Uint8Array.from(binary, (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
