import { checkpointOrigin, parseCheckpoint, verifyCheckpoint, type Checkpoint } from './checkpoint.js'
import { recordHash } from './hash.js'
import { parseHeader } from './header.js'
import { TreeHasher } from './merkle.js'
import { headsType, parseHeadsBody, type LoggedHead } from './server-log.js'
import { parseLine, parseManifest, type Manifest } from './strand-export.js'
import type { VerifiedExport } from './export-check.js'

/*
 * Whether a strand still begins as somebody saw it who kept a checkpoint: of that strand, or of the server log, which
 * tells of all strands (docs/FORMAT.md, The server log). Exports come here verified; they are read once more, to see what
 * they say at the sizes of the checkpoint.
 */

/** An export that was found good, and how to read its lines again. */
export interface ReadableExport {
  verified: VerifiedExport
  lines(): AsyncIterable<string>
}

/** What the comparison showed: a sentence without a full stop. */
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
  if (old.origin === checkpointOrigin(strand.verified.strand)) {
    const reason = await pastFault(strand, { note, old })
    if (reason !== undefined) return fault(reason)
    return { ok: true, shown: `with the checkpoint of ${old.size} records` }
  }
  if (log === undefined) {
    return fault('The checkpoint is of another strand; one of the server log needs an export of that log')
  }
  if (old.origin !== checkpointOrigin(log.verified.strand)) {
    return fault('The checkpoint is neither of this strand nor of the log given')
  }
  const reason = await pastFault(log, { note, old })
  if (reason !== undefined) return fault(`The server log: ${reason}`)
  return compareWithLog(strand, log, old)
}

/** What is wrong with the first records of a strand, by its own checkpoint. */
async function pastFault(
  strand: ReadableExport,
  { note, old }: { note: string; old: Checkpoint },
): Promise<string | undefined> {
  const { partial, lastSeq } = strand.verified
  if (partial) return 'Only an export from seq 0 can be compared with a checkpoint'
  const { rootHex, signer, strandSize } = await strandAt(strand, { note, size: old.size })
  const size = lastSeq + 1
  if (signer === 'former') {
    return `The checkpoint is signed by a key that was rotated away before the strand had ${old.size} records`
  }
  if (signer === undefined) {
    const further =
      strandSize > size
        ? `, which has ${size} of ${strandSize} records: one that reaches the rotation is needed`
        : ''
    return (
      `The checkpoint is not signed by the key in force after ${Math.min(old.size, size)} records, nor by one of a ` +
      `later rotation in the export${further}`
    )
  }
  if (rootHex === undefined) {
    return `The tail was cut: the checkpoint has ${old.size} records, the export ${size}`
  }
  return rootHex === old.rootHex
    ? undefined
    : `The strand was forked at or before record ${old.size - 1}: the checkpoint is over other records`
}

/** A strand after its first records, by an export that may go on behind them. */
interface StrandThen {
  /** Root over them, 64 hex digits; undefined where the export has fewer. */
  rootHex: string | undefined
  /**
   * Which key of the strand has signed the note: one that may (in force by then, or named by a later rotation), or a
   * former one, which was rotated away by a record that the note counts. Undefined where none of the export has.
   */
  signer: 'one that may' | 'former' | undefined
  /** Records of the whole strand when it was exported. */
  strandSize: number
}

/** A strand after its first `size` records, of which `note` tells. */
async function strandAt(
  { verified, lines }: ReadableExport,
  { note, size }: { note: string; size: number },
): Promise<StrandThen> {
  const tree = new TreeHasher()
  const then: StrandThen = {
    rootHex: size === 0 ? hexOf(tree.root()) : undefined,
    signer: undefined,
    strandSize: 0,
  }
  const asked = { key: '', signs: false }
  const ask = (key: string, seq: number) => {
    // A key stays for many records, and is asked once.
    if (key !== asked.key) Object.assign(asked, { key, signs: verifyCheckpoint(note, key) !== undefined })
    // The record after `size` others names the key that is in force by then.
    if (asked.signs) then.signer = seq >= size ? 'one that may' : (then.signer ?? 'former')
  }
  const read = recordsOf(lines(), verified, ({ recordCount }) => (then.strandSize = recordCount + 1))
  for await (const { seq, key, hash } of read) {
    ask(key, seq)
    if (seq >= size) continue
    tree.append(Buffer.from(hash, 'hex'))
    if (tree.size === size) then.rootHex = hexOf(tree.root())
  }
  // Behind the last record, which may be a rotation itself.
  ask(verified.publicKey, Math.max(size, verified.lastSeq + 1))
  return then
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

async function compareWithLog(
  strand: ReadableExport,
  log: ReadableExport,
  old: Checkpoint,
): Promise<Comparison> {
  const size = strand.verified.lastSeq + 1
  const { earlier, latest } = await toldOf(log, { strand: strand.verified.strand, before: old.size, size })
  if (earlier === undefined) return fault(`The log of ${old.size} records does not tell of this strand`)
  if (earlier.size > size) {
    return fault(`The tail was cut: the log told of ${earlier.size} records, the export has ${size}`)
  }
  const heads = [earlier, ...(latest === undefined ? [] : [latest])]
  const hashes = new Map<number, string>()
  for await (const { seq, hash } of recordsOf(strand.lines(), strand.verified)) {
    if (heads.some((head) => head.size === seq + 1)) hashes.set(seq + 1, hash)
  }
  for (const head of heads) {
    const hash = hashes.get(head.size)
    if (hash === undefined)
      return fault(`The log tells of record ${head.size - 1}, which the export leaves out`)
    if (hash !== head.hash) {
      return fault(`The strand was forked at or before record ${head.size - 1}: the log told of another`)
    }
  }
  return {
    ok: true,
    shown: `with the log of ${old.size} records, which told of ${earlier.size} of this strand`,
  }
}

/** The newest heads of a strand in a log: by its first records, and by all of them, as far as an export goes. */
async function toldOf(
  { verified, lines }: ReadableExport,
  wanted: { strand: string; before: number; size: number },
): Promise<{ earlier: LoggedHead | undefined; latest: LoggedHead | undefined }> {
  let earlier: LoggedHead | undefined
  let latest: LoggedHead | undefined
  for await (const { seq, type, body } of recordsOf(lines(), verified)) {
    if (type !== headsType || body === undefined) continue
    for (const head of parseHeadsBody(body)?.heads ?? []) {
      if (head.strand !== wanted.strand) continue
      if (seq < wanted.before) earlier = head
      if (head.size <= wanted.size) latest = head
    }
  }
  return { earlier, latest }
}

interface ReadRecord {
  seq: number
  hash: string
  key: string
  type: string
  body: string | undefined
}

/** The records of an export that was verified, which must still be that one: the chain of hashes tells. */
async function* recordsOf(
  lines: AsyncIterable<string>,
  { chainHead, firstSeq }: VerifiedExport,
  onManifest?: (manifest: Manifest) => void,
): AsyncGenerator<ReadRecord> {
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
