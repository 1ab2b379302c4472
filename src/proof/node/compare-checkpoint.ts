import { parseHeader } from '../../strand/header.js'
import { recordHash } from '../../strand/hash.js'
import type { Manifest } from '../../strand/strand-export.js'
import type { VerifiedExport } from '../export-check.js'
import { parseLine, parseManifest } from '../export-lines.js'
import { ToldHeads, headFault } from '../heads.js'
import { runNow } from '../job.js'
import { KeptCheckpoint } from '../kept-checkpoint.js'
import { parseCheckpoint, strandOf, type Checkpoint, verifyCheckpoint as check } from '../note.js'
import { jobs } from './jobs.js'

/*
 * Whether a strand still begins as it was when somebody kept a checkpoint of it, or of the server log, which names the
 * heads of all strands (docs/FORMAT.md, The server log). Exports are verified before; here they are read once more, for
 * what they say at the sizes of the checkpoint.
 */

/** An export that was found valid, and how to read its lines again. */
export interface ReadableExport {
  verified: VerifiedExport
  lines(): AsyncIterable<string>
}

/** The result of the comparison: a sentence without a full stop. */
export type Comparison = { ok: true; shown: string } | { ok: false; reason: string }

/**
 * Compares an export with a checkpoint that was kept earlier. With a checkpoint of the server log, `log` is an export of
 * that log from its first record.
 * @throws Error when an export is not any more what was verified; what reading it throws
 */
export async function compareWithCheckpoint(
  strand: ReadableExport,
  note: string,
  log?: ReadableExport,
): Promise<Comparison> {
  const old = parseCheckpoint(note)
  if (old === undefined) return fault('The checkpoint is no signed note of this form')
  const of = strandOf(old)
  if (of === strand.verified.strand) {
    const reason = await pastFault(strand, note)
    if (reason !== undefined) return fault(reason)
    return { ok: true, shown: `with the checkpoint of ${old.size} records` }
  }
  if (log === undefined) {
    return fault('The checkpoint is of another strand; one of the server log needs an export of that log')
  }
  if (of !== log.verified.strand) {
    return fault('The checkpoint is neither of this strand nor of the log given')
  }
  const reason = await pastFault(log, note)
  if (reason !== undefined) return fault(`The server log: ${reason}`)
  return compareWithLog(strand, log, old.size)
}

/** What is wrong with the first records of a strand, by its own checkpoint. */
async function pastFault({ verified, lines }: ReadableExport, note: string): Promise<string | undefined> {
  const kept = new KeptCheckpoint(note)
  let strandSize = 0
  let head: string | undefined
  const read = recordsOf(lines(), verified, ({ recordCount }) => (strandSize = recordCount + 1))
  for await (const { seq, key, hash } of read) {
    runNow(kept.follow({ seq, head, key }), jobs)
    head = hash
  }
  const { strand, firstSeq, lastSeq, publicKey } = verified
  // After the last record, which may be a rotation itself.
  runNow(kept.follow({ seq: lastSeq + 1, head, key: publicKey }), jobs)
  return kept.fault({ strand, firstSeq, lastSeq, strandSize })
}

/** Compares every head of a strand that a log names with the strand, as far as its export goes. */
async function compareWithLog(
  strand: ReadableExport,
  log: ReadableExport,
  before: number,
): Promise<Comparison> {
  const size = strand.verified.lastSeq + 1
  const told = new ToldHeads(strand.verified.strand, before)
  const records = recordsOf(strand.lines(), strand.verified)
  let different: string | undefined
  try {
    for await (const record of recordsOf(log.lines(), log.verified)) {
      const found = told.take(record)
      if ('fault' in found) return fault(`The server log: ${found.fault}`)
      const { head } = found
      if (different !== undefined || head === undefined || head.size > size) continue
      different = headFault(head, await hashAt(records, head.size - 1))
    }
    // Reads to the end, which shows whether it is still the export that was verified.
    if (different === undefined) await readThrough(records)
  } finally {
    await records.return(undefined)
  }
  const reason = told.fault(size) ?? different
  if (reason !== undefined) return fault(reason)
  return {
    ok: true,
    shown: `with the log of ${before} records, which told of ${told.settled?.size ?? 0} of this strand`,
  }
}

/** The hash of a record after those that were read so far; undefined where the export leaves it out. */
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

/** The records of a verified export. The chain of hashes shows whether it is still the same export. */
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

/** Reads a checkpoint that carries this key's signature; undefined when it does not. */
export function verifyCheckpoint(note: string, publicKey: string): Checkpoint | undefined {
  return runNow(check(note, publicKey), jobs)
}
