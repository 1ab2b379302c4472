import { checkpointOrigin, verifyCheckpoint } from './checkpoint.js'
import { ChainCheck } from './chain-check.js'
import { type Manifest, type Trailer, parseLine, parseManifest } from './strand-export.js'

/** An export that holds what it claims. */
export interface VerifiedExport {
  ok: true
  agent: string
  strand: string
  /** Records in the export. */
  records: number
  firstSeq: number
  lastSeq: number
  /** Hash of the last record. */
  chainHead: string
  /** The key in force after the last record. */
  publicKey: string
  /** Records that carry a signature of their own; each was checked. */
  signaturesChecked: number
  /** Records covered by a later one's signature. */
  sealed: number
  /** Records whose body is gone and whose place in the chain holds. */
  erased: number
  /** Records whose body was kept from whom the export was made for, and whose place in the chain holds. */
  withheld: number
  /** Keys followed through rotations: 1 when there was none. */
  keys: number
  /** Whether the trailer carried a checkpoint; if so, it was checked. */
  checkpoint: boolean
  /** The export begins after genesis: it proves its own links, not what came before them. */
  partial: boolean
}

/** The first fault found. */
export interface ExportFault {
  ok: false
  /** The record at fault, where the fault is one record's. */
  seq?: number
  /** Line of the export, counted from 1. */
  line: number
  reason: string
}

/** How often `onProgress` is told. */
const PROGRESS_RECORDS = 1_000

/**
 * Checks an export from nothing but its lines (contract.md 5, 8): every link, hash, body, signature and seal, key
 * rotations, the trailer and its checkpoint. Memory does not grow with the strand.
 *
 * `publicKey` is what the caller trusts: it must have signed a record of the export, as the first key or as one that
 * a rotation led to. What that signature covers is vouched for by it, what follows by the rotations.
 * Without it the export is only checked against itself.
 */
export async function verifyExport(
  lines: AsyncIterable<string> | Iterable<string>,
  options: { publicKey?: string; onProgress?: (records: number) => void } = {},
): Promise<VerifiedExport | ExportFault> {
  let line = 0
  let manifest: Manifest | undefined
  let chain: ChainCheck | undefined
  let trailer: Trailer | undefined
  for await (const text of lines) {
    line += 1
    if (chain === undefined || manifest === undefined) {
      manifest = parseManifest(text)
      if (manifest === undefined)
        return { ok: false, line, reason: 'The first line is no strand-export/v1 manifest' }
      chain = new ChainCheck(manifest, options.publicKey)
      continue
    }
    if (trailer !== undefined) return { ok: false, line, reason: 'A line follows the trailer' }
    const parsed = parseLine(text)
    if (parsed === undefined) {
      return { ok: false, seq: chain.nextSeq, line, reason: 'The line is neither a record nor the trailer' }
    }
    if ('trailer' in parsed) {
      trailer = parsed.trailer
      continue
    }
    const reason = chain.take(parsed.record)
    if (reason !== undefined) return { ok: false, seq: chain.nextSeq, line, reason }
    if (chain.records % PROGRESS_RECORDS === 0) options.onProgress?.(chain.records)
  }
  if (manifest === undefined || chain === undefined) return { ok: false, line, reason: 'The export is empty' }
  if (trailer === undefined) return { ok: false, line, reason: 'The export is cut off: it has no trailer' }
  const reason = chain.endFault() ?? trailerFault(manifest, trailer, chain)
  return reason === undefined ? verified(manifest, trailer, chain) : { ok: false, line, reason }
}

/** What is wrong with the trailer of an export whose records were all taken, or undefined. */
export function trailerFault(manifest: Manifest, trailer: Trailer, chain: ChainCheck): string | undefined {
  if (trailer.chainHead !== chain.head)
    return 'The chain head of the trailer is not the hash of the last record'
  if (trailer.records !== chain.records)
    return `The trailer counts ${trailer.records} records, not ${chain.records}`
  if (trailer.checkpoint === undefined) return undefined
  const checkpoint = verifyCheckpoint(trailer.checkpoint, chain.key)
  if (checkpoint === undefined) return 'The checkpoint does not verify'
  if (checkpoint.origin !== checkpointOrigin(manifest.strand)) return 'The checkpoint is of another strand'
  if (checkpoint.size !== chain.nextSeq)
    return `The checkpoint is of ${checkpoint.size} records, not ${chain.nextSeq}`
  const root = chain.root()
  return root === undefined || root === checkpoint.rootHex
    ? undefined
    : 'The root of the checkpoint is another'
}

function verified(manifest: Manifest, trailer: Trailer, chain: ChainCheck): VerifiedExport {
  return {
    ok: true,
    agent: manifest.agent,
    strand: manifest.strand,
    records: chain.records,
    firstSeq: manifest.fromSeq,
    lastSeq: chain.nextSeq - 1,
    chainHead: chain.head,
    publicKey: chain.key,
    signaturesChecked: chain.signaturesChecked,
    sealed: chain.sealed,
    erased: chain.erased,
    withheld: chain.withheld,
    keys: chain.keys,
    checkpoint: trailer.checkpoint !== undefined,
    partial: manifest.fromSeq > 0,
  }
}
