import { verifies } from './ed25519.js'
import { fromHex, joined, toHex, utf8 } from './hex.js'
import { type Check, hashOf } from './job.js'

export interface Checkpoint {
  /** `strandfast/<64 hex of the strand>`, which is also the name of the signing key. */
  origin: string
  /** Records including genesis. */
  size: number
  /** Their tree root, 64 hex digits. */
  rootHex: string
}

/** A parsed signed note, not verified yet. */
export interface CheckpointNote extends Checkpoint {
  /** The signed text: the note up to the empty line. */
  text: string
  signatures: { name: string; keyId: string; signature: string }[]
}

/**
 * A name without plus, controls and Unicode white space. The characters are listed because `\s` differs
 * between languages.
 */
const NAME =
  '[^+\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff]+'
/** Signatures of a note that readers must support (C2SP signed-note). */
const SIGNATURES_MAX = 16
const NOTE = new RegExp(
  `^((${NAME})\\n(0|[1-9][0-9]{0,15})\\n([A-Za-z0-9+/]{43}=)\\n)\\n((?:\\u2014 ${NAME} [A-Za-z0-9+/=]+\\n){1,${SIGNATURES_MAX}})$`,
)
const STRAND_ORIGIN = /^strandfast\/([0-9a-f]{64})$/
const KEY_ID_BYTES = 4
const ED25519 = Uint8Array.of(1)

/** Parses a checkpoint (C2SP tlog-checkpoint, signed-note); undefined if it is malformed. */
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
 * Adds the signatures of an earlier note of the same checkpoint, such as cosignatures of witnesses. The
 * earlier signatures come first; those beyond `SIGNATURES_MAX` are dropped.
 */
export function withSignaturesOf(earlier: string, note: string): string {
  const text = parseCheckpoint(note)?.text
  if (text === undefined || parseCheckpoint(earlier)?.text !== text) return note
  const lines = [earlier, note].flatMap((one) => one.slice(text.length + 1).match(/.+\n/g) ?? [])
  return `${text}\n${[...new Set(lines)].slice(0, SIGNATURES_MAX).join('')}`
}

/** The strand of a checkpoint; undefined if the origin is not of a strand. */
export function strandOf({ origin }: Checkpoint): string | undefined {
  return STRAND_ORIGIN.exec(origin)?.[1]
}

/**
 * Parses a checkpoint that `publicKey` has signed under the name of its origin; undefined otherwise.
 * Signatures by other keys are ignored, as signed-note requires.
 */
export function* verifyCheckpoint(note: string, publicKey: string): Check<Checkpoint | undefined> {
  const parsed = parseCheckpoint(note)
  if (parsed === undefined || !(yield* isSignedBy(parsed, publicKey))) return undefined
  const { origin, size, rootHex } = parsed
  return { origin, size, rootHex }
}

/** Whether `publicKey` has signed a note under the name of its origin. */
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

/** Decodes base64 text; undefined if the text is not canonical. */
function fromBase64(text: string): Uint8Array | undefined {
  try {
    const binary = atob(text)
    if (btoa(binary) !== text) return undefined
    return Uint8Array.from(binary, (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
