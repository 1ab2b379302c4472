import { type VerifiedExport, verifyConsistency } from '../../client/index.js'
import { requireEd25519, webCryptoJobs } from '../../client/webcrypto.js'
import { runLater } from '../../proof/job.js'
import { isSignedBy, parseCheckpoint, strandOf } from '../../proof/note.js'
import { leadsToRoot, pathOf } from '../../proof/tree-proof.js'
import { countText, keyDigits } from '../parts/format.js'
import { objectOfJson } from '../parts/json.js'
import { checkInWorker } from '../parts/proof/checker.js'
import type { Verdict } from '../parts/result.js'

/** What the reader of the page knows from elsewhere, as it was typed; empty for what is not known. */
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

/** Checkpoints and proofs are short. */
const SMALL_BYTES_MAX = 1_000_000
const HEAD_BYTES = 4_096
const not = (reason: string): { verdict: Verdict } => ({
  verdict: { ok: false, text: `Not verified: ${reason}` },
})
const holds = (text: string): { verdict: Verdict } => ({ verdict: { ok: true, text: `Verified: ${text}` } })

/**
 * Checks a file: an export, plain or compressed, a checkpoint, or a proof as the service answers it.
 * @throws Error where the platform has no Ed25519; what reading the file throws; the signal's reason
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
  if (file.size > SMALL_BYTES_MAX) return not('this is no export, and too long for a checkpoint or a proof')
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
    const place = result.seq === undefined ? `line ${result.line}` : `record ${result.seq}`
    return not(`${place}: ${result.reason}`)
  }
  const { agent, firstSeq, lastSeq, records } = result
  const kept =
    result.kept === undefined
      ? ''
      : `, beginning with the ${countText(result.kept.size)} of the kept checkpoint`
  return {
    ...holds(`${countText(records)} records of ${agent}, ${firstSeq} to ${lastSeq}${kept}`),
    found: result,
  }
}

async function checkNote(text: string, { publicKey, strand }: FileTrust) {
  const note = parseCheckpoint(text)
  const named = note && strandOf(note)
  if (note === undefined || named === undefined) return not('the checkpoint is of no strand')
  if (strand !== '' && strand !== named) return not('the checkpoint is of another strand than the one given')
  if (publicKey === '')
    return not('a checkpoint says nothing without a key. Give the public key that you trust')
  const isSigned = await runLater(isSignedBy(note, publicKey), webCryptoJobs())
  if (!isSigned) return not('the checkpoint is not signed by the key that you trust')
  return holds(`the checkpoint of ${countText(note.size)} records is signed by key …${keyDigits(publicKey)}`)
}

async function checkProof(text: string, trust: FileTrust) {
  const proof = objectOfJson(text) ?? {}
  const { checkpoint, path, seq, hash } = proof
  if (typeof checkpoint !== 'string' || path === undefined) {
    return not('this is no export, checkpoint or proof of this format')
  }
  if (trust.publicKey === '')
    return not('a proof says nothing without a key. Give the public key that you trust')
  if (typeof seq === 'number' && typeof hash === 'string')
    return checkInclusion({ checkpoint, path, seq, hash }, trust)
  if (trust.kept === '') return not('a consistency proof needs the checkpoint that you have kept')
  const { publicKey, strand } = trust
  const keys = { publicKey, ...(strand !== '' && { strand }) }
  const answer = { checkpoint, path: pathOf(path) ?? [] }
  const grown = await verifyConsistency(trust.kept, answer, keys)
  if (!grown.ok) return not(grown.reason)
  return holds(
    `the ${countText(grown.from)} records that were kept begin the ${countText(grown.to)} of today`,
  )
}

async function checkInclusion(
  { checkpoint, path, seq, hash }: { checkpoint: string; path: unknown; seq: number; hash: string },
  { publicKey, strand }: FileTrust,
) {
  const note = parseCheckpoint(checkpoint)
  const hashes = pathOf(path)
  const record = `record ${seq}`
  if (note === undefined || hashes === undefined) return not(`${record}: the proof cannot be read`)
  if (strand !== '' && strand !== strandOf(note))
    return not(`${record}: the proof is of another strand than the one given`)
  if (!(await runLater(isSignedBy(note, publicKey), webCryptoJobs())))
    return not(`${record}: the checkpoint of the proof is not signed by the key that you trust`)
  const place = { index: seq, size: note.size, leaf: hash, path: hashes, rootHex: note.rootHex }
  if (!(await runLater(leadsToRoot(place), webCryptoJobs())))
    return not(`${record}: its path does not lead to the root of the checkpoint`)
  return holds(`${record}, of hash ${hash}, is one of the ${countText(note.size)} records of the checkpoint`)
}

/** A kit is three lines of hex and two notes. */
const BYTES_MAX = 100_000

/** What the first steps save for whoever does not trust the server (`#/start`). */
export interface TrustKit {
  agent: string
  trust: FileTrust
}

/** Reads such a file. @returns undefined where it is something else */
export async function readTrustKit(file: File): Promise<TrustKit | undefined> {
  if (file.size > BYTES_MAX) return undefined
  const { agent, strand, public_key: publicKey, checkpoint: kept } = objectOfJson(await file.text()) ?? {}
  if (typeof agent !== 'string' || typeof strand !== 'string') return undefined
  if (typeof publicKey !== 'string' || typeof kept !== 'string') return undefined
  return { agent, trust: { strand, publicKey, kept } }
}
