import { type VerifiedExport, verifyConsistency } from '../../client/index.js'
import { requireEd25519, webCryptoJobs } from '../../client/webcrypto.js'
import { runAsync } from '../../proof/job.js'
import { isSignedBy, parseCheckpoint, strandOf } from '../../proof/note.js'
import { leadsToRoot, pathOf } from '../../proof/tree-proof.js'
import { keyDigits, recordsText } from '../parts/format.js'
import { objectOfJson } from '../parts/json.js'
import { checkInWorker } from '../parts/proof/checker.js'
import { fails, holds, type Verdict } from '../parts/result.js'

/** Values that the user knows from another source, as typed; unknown values are empty. */
export interface FileTrust {
  publicKey: string
  strand: string
  kept: string
}

interface FileCheck {
  trust: FileTrust
  signal: AbortSignal
  onProgress: (records: number) => void
}

/** The most bytes of a checkpoint or proof. */
const SMALL_BYTES_MAX = 1_000_000
const HEAD_BYTES = 4_096
const not = (reason: string): { verdict: Verdict } => ({ verdict: fails(reason) })
/** A checkpoint or a proof is verified only with the key that the user trusts. */
const verified = (text: string): { verdict: Verdict } => ({ verdict: holds(text, true) })

/**
 * Verifies a file: an export (plain or gzip), a checkpoint, or a proof in the format of the API.
 * @throws Error if the platform has no Ed25519; errors of reading the file; the signal's reason
 */
export async function checkFile(
  file: File,
  check: FileCheck,
): Promise<{ verdict: Verdict; found?: VerifiedExport | undefined }> {
  await requireEd25519()
  const trust = {
    publicKey: check.trust.publicKey.trim().toLowerCase(),
    strand: check.trust.strand.trim().toLowerCase(),
    kept: check.trust.kept === '' ? '' : `${check.trust.kept.trimEnd()}\n`,
  }
  for (const [name, hex] of [
    ['key', trust.publicKey],
    ['strand', trust.strand],
  ] as const) {
    if (hex !== '' && !/^[0-9a-f]{64}$/.test(hex)) return not(`expected a ${name} of 64 hex digits`)
  }
  const isPacked = await beginsWithGzip(file)
  const beginning = isPacked ? '' : await file.slice(0, HEAD_BYTES).text()
  if (isPacked || beginning.includes('"strand-export/v1"'))
    return checkExport(file, { ...check, trust }, isPacked)
  if (file.size > SMALL_BYTES_MAX)
    return not('the file is not an export, and too large for a checkpoint or a proof')
  const text = await file.text()
  if (parseCheckpoint(text) !== undefined) return checkNote(text, trust)
  return checkProof(text, trust)
}

async function beginsWithGzip(file: File): Promise<boolean> {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer())
  return first === 0x1f && second === 0x8b
}

async function checkExport(file: File, { trust, signal, onProgress }: FileCheck, isPacked: boolean) {
  const stream = isPacked ? file.stream().pipeThrough(new DecompressionStream('gzip')) : file.stream()
  const known = (text: string): string | undefined => (text === '' ? undefined : text)
  const options = { publicKey: known(trust.publicKey), strand: known(trust.strand), kept: known(trust.kept) }
  const { result } = await checkInWorker({ stream, options, onProgress, signal })
  if (!result.ok) {
    const location = result.seq === undefined ? `line ${result.line}` : `record ${result.seq}`
    return not(`${location}: ${result.reason}`)
  }
  const { agent, firstSeq, lastSeq } = result
  const kept =
    result.kept === undefined
      ? ''
      : `, extending the ${recordsText(result.kept.size - 1)} of the saved checkpoint`
  return {
    verdict: holds(
      `${recordsText(lastSeq, firstSeq)} of ${agent}, ${firstSeq} to ${lastSeq}${kept}`,
      trust.publicKey !== '',
    ),
    found: result,
  }
}

async function checkNote(text: string, { publicKey, strand }: FileTrust) {
  const note = parseCheckpoint(text)
  const named = note && strandOf(note)
  if (note === undefined || named === undefined) return not('the checkpoint names no strand')
  if (strand !== '' && strand !== named)
    return not('the checkpoint belongs to another strand than the given one')
  if (publicKey === '')
    return not('a checkpoint proves nothing without a key. Enter the public key that you trust')
  const isSigned = await runAsync(isSignedBy(note, publicKey), webCryptoJobs())
  if (!isSigned) return not('the checkpoint is not signed with the key that you trust')
  return verified(
    `the checkpoint of ${recordsText(note.size - 1)} is signed with key …${keyDigits(publicKey)}`,
  )
}

async function checkProof(text: string, trust: FileTrust) {
  const proof = objectOfJson(text) ?? {}
  const { checkpoint, path, seq, hash } = proof
  if (typeof checkpoint !== 'string' || path === undefined) {
    return not('the file is not an export, a checkpoint or a proof')
  }
  if (trust.publicKey === '')
    return not('a proof proves nothing without a key. Enter the public key that you trust')
  if (typeof seq === 'number' && typeof hash === 'string')
    return checkInclusion({ checkpoint, path, seq, hash }, trust)
  if (trust.kept === '') return not('a consistency proof needs a saved checkpoint. Enter it below')
  const { publicKey, strand } = trust
  const keys = { publicKey, ...(strand !== '' && { strand }) }
  const answer = { checkpoint, path: pathOf(path) ?? [] }
  const grown = await verifyConsistency(trust.kept, answer, keys)
  if (!grown.ok) return not(grown.reason)
  return verified(
    `the ${recordsText(grown.to - 1)} extend the ${recordsText(grown.from - 1)} of the saved checkpoint`,
  )
}

async function checkInclusion(
  { checkpoint, path, seq, hash }: { checkpoint: string; path: unknown; seq: number; hash: string },
  { publicKey, strand }: FileTrust,
) {
  const note = parseCheckpoint(checkpoint)
  const hashes = pathOf(path)
  const record = `record ${seq}`
  if (note === undefined || hashes === undefined) return not(`${record}: the proof is malformed`)
  if (strand !== '' && strand !== strandOf(note))
    return not(`${record}: the proof belongs to another strand than the given one`)
  if (!(await runAsync(isSignedBy(note, publicKey), webCryptoJobs())))
    return not(`${record}: the checkpoint of the proof is not signed with the key that you trust`)
  const inclusion = { index: seq, size: note.size, leaf: hash, path: hashes, rootHex: note.rootHex }
  if (!(await runAsync(leadsToRoot(inclusion), webCryptoJobs())))
    return not(`${record}: its path does not lead to the root of the checkpoint`)
  return verified(`${record} with hash ${hash} is in the checkpoint of ${recordsText(note.size - 1)}`)
}

/** The most bytes of a file of keys and checkpoints. */
const TRUST_BYTES_MAX = 100_000

/** The file of keys and checkpoints that `#/start` saves. */
export interface SavedTrust {
  agent: string
  trust: FileTrust
}

/** Parses a file of keys and checkpoints. @returns undefined for any other file */
export async function readSavedTrust(file: File): Promise<SavedTrust | undefined> {
  if (file.size > TRUST_BYTES_MAX) return undefined
  const { agent, strand, public_key: publicKey, checkpoint: kept } = objectOfJson(await file.text()) ?? {}
  if (typeof agent !== 'string' || typeof strand !== 'string') return undefined
  if (typeof publicKey !== 'string' || typeof kept !== 'string') return undefined
  return { agent, trust: { strand, publicKey, kept } }
}
