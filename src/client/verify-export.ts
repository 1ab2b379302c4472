import { ChainCheck, type ExaminedRecord, examineRecord } from './chain-check.js'
import { verifyCheckpoint } from './checkpoint.js'
import { KeptCheckpoint, type KeptStrand } from './kept-checkpoint.js'
import { type Manifest, type Trailer, parseLine, parseManifest } from './export-lines.js'
import { type ExportSource, textLines } from './text-lines.js'
import { SignatureCheck, requireEd25519 } from './webcrypto.js'

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
  /** With `kept`: the strand as it was then, which the export goes on from. */
  kept?: KeptStrand
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

/** Whether an export holds what it claims. */
export type VerifyResult = VerifiedExport | ExportFault

/** What the caller trusts, and who is told how far checking has come. */
export interface VerifyOptions {
  /**
   * The agent's public key, 64 hex digits, learnt elsewhere than from the export: it must have signed a
   * record of it. Without it an export is only checked against itself, and anyone can make such a one.
   */
  publicKey?: string | undefined
  /**
   * A checkpoint of the strand that was kept, or that came with an answer as of a moment: the export must begin with the
   * records that it counts, and hold its key as the one in force after them or as one of a later rotation.
   */
  kept?: string | undefined
  /** Told after every 1,000 records. */
  onProgress?: ((records: number) => void) | undefined
}

/** Records whose hashes and signatures are worked out at once: WebCrypto answers each on another thread. */
const EXAMINED_AHEAD = 64
const PROGRESS_RECORDS = 1_000

interface Waiting {
  line: number
  examined: Promise<ExaminedRecord>
}

/**
 * Checks an export by WebCrypto alone (contract.md 5, 7): every link, hash, body, signature and seal, key
 * rotations, the trailer and its checkpoint. Memory does not grow with the strand.
 * @throws Error where the platform has no Ed25519; what the source throws
 */
export async function verifyExport(source: ExportSource, options: VerifyOptions = {}): Promise<VerifyResult> {
  await requireEd25519()
  const lines = textLines(source)
  try {
    const first = await lines.next()
    if (first.done) return { ok: false, line: 0, reason: 'The export is empty' }
    const manifest = parseManifest(first.value)
    if (manifest === undefined) {
      return { ok: false, line: 1, reason: 'The first line is no strand-export/v1 manifest' }
    }
    return await verifyRecords(lines, manifest, options)
  } finally {
    await lines.return()
  }
}

async function verifyRecords(
  lines: AsyncGenerator<string, void>,
  manifest: Manifest,
  options: VerifyOptions,
): Promise<VerifyResult> {
  const signatures = new SignatureCheck()
  const chain = new ChainCheck(manifest, options.publicKey, signatures)
  const kept = options.kept === undefined ? undefined : new KeptCheckpoint(options.kept, signatures)
  const waiting: Waiting[] = []
  const takeDownTo = async (count: number): Promise<ExportFault | undefined> => {
    while (waiting.length > count) {
      const fault = await takeNext(chain, waiting)
      if (fault !== undefined) return fault
      await kept?.follow(chain)
      if (chain.records % PROGRESS_RECORDS === 0) options.onProgress?.(chain.records)
    }
    return undefined
  }
  let line = 1
  let trailer: Trailer | undefined
  for await (const text of lines) {
    line += 1
    const parsed = trailer === undefined ? parseLine(text) : undefined
    // A record before this line may be wrong as well, and the first fault is the one to name.
    const fault = await takeDownTo(parsed !== undefined && 'record' in parsed ? EXAMINED_AHEAD - 1 : 0)
    if (fault !== undefined) return fault
    if (trailer !== undefined) return { ok: false, line, reason: 'A line follows the trailer' }
    if (parsed === undefined) {
      return { ok: false, seq: chain.nextSeq, line, reason: 'The line is neither a record nor the trailer' }
    }
    if ('trailer' in parsed) trailer = parsed.trailer
    else waiting.push({ line, examined: examineRecord(parsed.record, signatures) })
  }
  const fault = await takeDownTo(0)
  if (fault !== undefined) return fault
  if (trailer === undefined) return { ok: false, line, reason: 'The export is cut off: it has no trailer' }
  const reason =
    chain.endFault() ??
    (await trailerFault({ manifest, trailer }, chain, signatures)) ??
    (await kept?.fault(manifest))
  if (reason !== undefined) return { ok: false, line, reason }
  const found = verified(manifest, trailer, chain)
  return kept === undefined ? found : { ...found, kept: kept.strand }
}

async function takeNext(chain: ChainCheck, waiting: Waiting[]): Promise<ExportFault | undefined> {
  const next = waiting.shift()
  if (next === undefined) return undefined
  const reason = await chain.take(await next.examined)
  return reason === undefined ? undefined : { ok: false, seq: chain.nextSeq, line: next.line, reason }
}

async function trailerFault(
  ends: { manifest: Manifest; trailer: Trailer },
  chain: ChainCheck,
  signatures: SignatureCheck,
): Promise<string | undefined> {
  const { manifest, trailer } = ends
  if (trailer.chainHead !== chain.head)
    return 'The chain head of the trailer is not the hash of the last record'
  if (trailer.records !== chain.records) {
    return `The trailer counts ${trailer.records} records, not ${chain.records}`
  }
  if (trailer.checkpoint === undefined) return undefined
  const checkpoint = await verifyCheckpoint(trailer.checkpoint, chain.key, signatures)
  if (checkpoint === undefined) return 'The checkpoint does not verify'
  if (checkpoint.origin !== `strandfast/${manifest.strand}`) return 'The checkpoint is of another strand'
  if (checkpoint.size !== chain.nextSeq) {
    return `The checkpoint is of ${checkpoint.size} records, not ${chain.nextSeq}`
  }
  const root = await chain.root()
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
