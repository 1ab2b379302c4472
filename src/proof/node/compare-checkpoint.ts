import { parseHeader } from '../../strand/header.js'
import { recordHash } from '../../strand/hash.js'
import type { Manifest } from '../../strand/strand-export.js'
import type { VerifiedExport } from '../export-check.js'
import { parseLine, parseManifest } from '../export-lines.js'
import { StrandHeads, headFault } from '../heads.js'
import { runSync } from '../job.js'
import { KeptCheckpoint } from '../kept-checkpoint.js'
import { parseCheckpoint, strandOf, type Checkpoint, verifyCheckpoint as check } from '../note.js'
import { jobs } from './jobs.js'

/*
 * Compares a strand with an earlier checkpoint of it, or of the server log, which has the heads of all
 * strands (docs/FORMAT.md, The server log). The exports were verified before and are read a second time here.
 */

/** A valid export, and a function to read its lines again. */
export interface ReadableExport {
  verified: VerifiedExport
  lines(): AsyncIterable<string>
}

/** The result of the comparison; `shown` completes the sentence "compared …". */
export type Comparison = { ok: true; shown: string } | { ok: false; reason: string }

/**
 * Compares an export with an earlier checkpoint. A checkpoint of the server log needs `log`, an export of
 * that log from its first record.
 * @throws Error if an export has changed since it was verified, or cannot be read
 */
export async function compareWithCheckpoint(
  strand: ReadableExport,
  note: string,
  log?: ReadableExport,
): Promise<Comparison> {
  const old = parseCheckpoint(note)
  if (old === undefined) return fault('The checkpoint is not a valid signed note')
  const noteStrand = strandOf(old)
  if (noteStrand === strand.verified.strand) {
    const reason = await pastFault(strand, note)
    if (reason !== undefined) return fault(reason)
    return { ok: true, shown: `with the checkpoint of ${old.size} records` }
  }
  if (log === undefined) {
    return fault('The checkpoint is of another strand; one of the server log needs an export of that log')
  }
  if (noteStrand !== log.verified.strand) {
    return fault('The checkpoint is neither of this strand nor of the log given')
  }
  const reason = await pastFault(log, note)
  if (reason !== undefined) return fault(`The server log: ${reason}`)
  return compareWithLog(strand, log, old.size)
}

/** The fault of a strand according to its earlier checkpoint, or undefined. */
async function pastFault({ verified, lines }: ReadableExport, note: string): Promise<string | undefined> {
  const kept = new KeptCheckpoint(note)
  let strandSize = 0
  let head: string | undefined
  const read = recordsOf(lines(), verified, ({ recordCount }) => (strandSize = recordCount + 1))
  for await (const { seq, key, hash } of read) {
    runSync(kept.follow({ seq, head, key }), jobs)
    head = hash
  }
  const { strand, firstSeq, lastSeq, publicKey } = verified
  // The last record may be a rotation, so `publicKey` can be a new key.
  runSync(kept.follow({ seq: lastSeq + 1, head, key: publicKey }), jobs)
  return kept.fault({ strand, firstSeq, lastSeq, strandSize })
}

/** Compares a strand with all of its heads in a log, up to the end of its export. */
async function compareWithLog(
  strand: ReadableExport,
  log: ReadableExport,
  before: number,
): Promise<Comparison> {
  const size = strand.verified.lastSeq + 1
  const loggedHeads = new StrandHeads(strand.verified.strand, before)
  const records = recordsOf(strand.lines(), strand.verified)
  let different: string | undefined
  try {
    for await (const record of recordsOf(log.lines(), log.verified)) {
      const found = loggedHeads.take(record)
      if ('fault' in found) return fault(`The server log: ${found.fault}`)
      const { head } = found
      if (different !== undefined || head === undefined || head.size > size) continue
      different = headFault(head, await hashAt(records, head.size - 1))
    }
    // Reading to the end checks that the export has not changed since it was verified.
    if (different === undefined) await readThrough(records)
  } finally {
    await records.return(undefined)
  }
  const reason = loggedHeads.fault(size) ?? different
  if (reason !== undefined) return fault(reason)
  return {
    ok: true,
    shown: `with the log of ${before} records, which names ${loggedHeads.headAtCheckpoint?.size ?? 0} of this strand`,
  }
}

/** Reads up to the record `seq` and returns its hash; undefined if the export does not have it. */
async function hashAt(records: AsyncGenerator<RecordRead>, seq: number): Promise<string | undefined> {
  for (;;) {
    const { done, value } = await records.next()
    if (done === true || value.seq > seq) return undefined
    if (value.seq === seq) return value.hash
  }
}

async function readThrough(records: AsyncGenerator<RecordRead>): Promise<void> {
  while ((await records.next()).done !== true);
}

interface RecordRead {
  seq: number
  hash: string
  key: string
  type: string
  body: string | undefined
}

/** The records of a verified export. The chain of hashes shows whether the export has changed. */
async function* recordsOf(
  lines: AsyncIterable<string>,
  { chainHead, firstSeq }: VerifiedExport,
  onManifest?: (manifest: Manifest) => void,
): AsyncGenerator<RecordRead> {
  let manifest: Manifest | undefined
  let last: string | undefined
  for await (const text of lines) {
    if (manifest === undefined) {
      manifest = parseManifest(text)
      if (manifest === undefined) throw new Error('the export has changed since it was verified')
      onManifest?.(manifest)
      continue
    }
    const line = parseLine(text)
    if (line === undefined || 'trailer' in line) continue
    const { h, body } = line.record
    const header = parseHeader(h)
    const linked = header !== undefined && (header.seq === firstSeq || header.prev === last)
    if (!linked) throw new Error('the export has changed since it was verified')
    last = recordHash(h)
    yield { seq: header.seq, hash: last, key: header.key, type: header.type, body }
  }
  if (last !== chainHead) throw new Error('the export has changed since it was verified')
}

function fault(reason: string): Comparison {
  return { ok: false, reason }
}

/** Parses a checkpoint that is signed by `publicKey`; undefined otherwise. */
export function verifyCheckpoint(note: string, publicKey: string): Checkpoint | undefined {
  return runSync(check(note, publicKey), jobs)
}
