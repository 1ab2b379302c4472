import { createReadStream } from 'node:fs'
import { isFileSystemError } from '../base/durable-file.js'
import type { ExportFault, VerifiedExport } from '../proof/export-check.js'
import { command, fail, exitCodes } from './command.js'
import { describeError, printableLines } from './printable.js'
import { startProgress } from './progress.js'
import { splitLines } from './split-lines.js'
import { unpacked } from './unpacked.js'
import { verifySegments } from './verify-segments.js'
import { limits } from '../base/limits/limits.js'
import { readBounded } from '../base/bounded-file.js'
import { compareWithCheckpoint, type Comparison } from '../proof/node/compare-checkpoint.js'
import { verifyExport } from '../proof/node/verify-export.js'

const USAGE = `Usage: strandfast verify FILE --key HEX [--strand HEX] [--fast], FILE being an export (gzipped too) or - for standard input
       [--checkpoint OLD [--log LOGFILE [--log-key HEX]]]
--checkpoint also shows that the strand begins with the records of the checkpoint in the file OLD. A later key of the
strand may have signed it, as those of answers as of a moment: FILE then holds the rotation to that key. Where OLD is one
of the server log, LOGFILE is an export of that log from its first record.
--strand is the strand that was noted when it was first seen. Without it any strand passes that the key has signed: whoever
holds the key can begin another one by it, for an agent of the same name.
Without --fast every hash, body and signature is checked: each record was signed, alone or under the seal of its group.
--fast checks every hash too, those of bodies among them, but of the signatures only those that all else hangs on: of
the first record, of each change of key and of the last record. It proves as well that no record was changed, left out
or put in by anyone without the key; it does not prove that each record carries a valid signature of its own, nor that
each body is JSON.
`

/** Bytes of the file that are read at once: a step of the stream costs the same for few and for many. */
const READ_BYTES = 524_288

/**
 * Checks an export offline: needs only the file and the agent's public key (docs/FORMAT.md, Checking an export).
 * @returns the exit code: 0 fine, 1 found wrong, 66 a file cannot be read, 78 wrong usage
 */
export const verifyCommand = command({
  usage: USAGE,
  options: {
    key: { type: 'string' },
    strand: { type: 'string' },
    fast: { type: 'boolean', default: false },
    checkpoint: { type: 'string' },
    log: { type: 'string' },
    'log-key': { type: 'string' },
  },
  operands: true,
  read(values, [file, ...more]): VerifyRequest | string {
    const publicKey = values.key?.toLowerCase() ?? ''
    if (file === undefined || more.length > 0) return 'Expected one FILE'
    if (!/^[0-9a-f]{64}$/.test(publicKey)) return 'Expected --key to be a public key of 64 hex digits'
    const strand = values.strand?.toLowerCase()
    if (strand !== undefined && !/^[0-9a-f]{64}$/.test(strand))
      return 'Expected --strand to be a strand of 64 hex digits'
    const past = readCheckpointOptions(file, values)
    return typeof past === 'string' ? past : { file, publicKey, strand, fast: values.fast, past }
  },
  run: verify,
})

async function verify({ file, publicKey: trustedKey, strand, fast, past }: VerifyRequest): Promise<number> {
  let checked: { done: number; total?: number } = { done: 0 }
  const progress = startProgress()
  progress.show({ doing: 'checked', unit: 'records', state: () => checked })
  try {
    const result = await verifySegments(openExport(file), {
      trustedKey,
      strand,
      fast,
      onProgress(done, total) {
        checked = { done, total }
        progress.tick()
      },
    })
    progress.end()
    if (!result.ok) return say(describeFault(result), exitCodes.foundWrong)
    if (past === undefined) return say(describe(result, fast), exitCodes.fine)
    const compared = await compareExport(past, { file, verified: result }, (one) =>
      splitLines(openExport(one)),
    )
    return compared.ok
      ? say(`${describe(result, fast)}compared    ${compared.shown}\n`, exitCodes.fine)
      : say(`NOT VERIFIED: ${compared.reason}\n`, exitCodes.foundWrong)
  } catch (error) {
    progress.end()
    const reason = describeError(error)
    // A name that is mistyped says nothing against the export.
    if (isFileSystemError(error)) return fail(`Nothing was verified: ${reason}`, exitCodes.noInput)
    return say(`NOT VERIFIED: the export cannot be read: ${reason}\n`, exitCodes.foundWrong)
  }
}

function say(text: string, exitCode: number): number {
  process.stdout.write(printableLines(text))
  return exitCode
}

interface VerifyRequest {
  file: string
  publicKey: string
  strand: string | undefined
  fast: boolean
  past: PastCheckpoint | undefined
}

function openExport(file: string): AsyncIterable<Buffer> {
  return unpacked(file === '-' ? process.stdin : createReadStream(file, { highWaterMark: READ_BYTES }))
}

function describe(result: VerifiedExport, fast: boolean): string {
  const withheld = result.withheld > 0 ? `, ${result.withheld} withheld` : ''
  const checked = `${result.signaturesChecked} checked${fast ? `, ${result.signaturesPassed ?? 0} not` : ''}`
  const lines = [
    `VERIFIED ${result.records} records of ${result.agent}, seq ${result.firstSeq} to ${result.lastSeq}`,
    `strand      ${result.strand}`,
    `chain head  ${result.chainHead}`,
    `key         ${result.publicKey}${result.keys > 1 ? ` (after ${result.keys - 1} rotations)` : ''}`,
    `signatures  ${checked}; ${result.sealed} records sealed by them, ${result.erased} erased${withheld}`,
    `checkpoint  ${result.checkpoint ? 'checked' : 'none'}`,
  ]
  if (result.unexplained !== undefined) {
    const { count, firstSeq } = result.unexplained
    lines.push(
      `UNEXPLAINED: no sys/erase in this file tells of ${count} of the erased records, the first of them record ${firstSeq};`,
      'they were erased after its last record, or whoever handed it on has left the bodies out',
    )
  }
  if (fast) {
    lines.push(
      'FAST: every hash and body was checked, and the signature of the last record, which fixes all before it; not that',
      'each record carries a valid signature of its own',
    )
  }
  if (result.partial) {
    lines.push(
      `PARTIAL: nothing before seq ${result.firstSeq} was checked; only an export from seq 0 proves all`,
    )
  }
  return `${lines.join('\n')}\n`
}

function describeFault(fault: ExportFault): string {
  const record = fault.seq === undefined ? '' : `record ${fault.seq}, `
  return `NOT VERIFIED: ${record}line ${fault.line}: ${fault.reason}\n`
}

/** Which checkpoint an export is to be compared with. */
interface PastCheckpoint {
  checkpoint: string
  log: string | undefined
  logKey: string | undefined
}

/** Reads these options; undefined when none is given, a text when they are wrong. */
function readCheckpointOptions(
  file: string,
  values: Partial<Record<'checkpoint' | 'log' | 'log-key', string>>,
): PastCheckpoint | undefined | string {
  const { checkpoint, log } = values
  const logKey = values['log-key']?.toLowerCase()
  if (checkpoint === undefined) {
    return log === undefined && logKey === undefined ? undefined : 'Expected --checkpoint with --log'
  }
  if (log === undefined && logKey !== undefined) return 'Expected --log with --log-key'
  if (file === '-' || log === '-') return 'Expected files with --checkpoint: they are read twice'
  if (logKey !== undefined && !/^[0-9a-f]{64}$/.test(logKey)) {
    return 'Expected --log-key to be a public key of 64 hex digits'
  }
  return { checkpoint, log, logKey }
}

/**
 * Compares a verified export with a checkpoint that was kept earlier; an export of the server log is verified first.
 * @throws Error for a file that cannot be read
 */
async function compareExport(
  asked: PastCheckpoint,
  { file, verified }: { file: string; verified: VerifiedExport },
  linesOf: (file: string) => AsyncIterable<string>,
): Promise<Comparison> {
  const note = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
    readBounded(asked.checkpoint, limits.smallFileBytesMax),
  )
  const strand = { verified, lines: () => linesOf(file) }
  const { log, logKey } = asked
  if (log === undefined) return compareWithCheckpoint(strand, note)
  const ofLog = await verifyExport(linesOf(log), logKey === undefined ? {} : { publicKey: logKey })
  if (!ofLog.ok) return { ok: false, reason: `The server log: line ${ofLog.line}: ${ofLog.reason}` }
  return compareWithCheckpoint(strand, note, { verified: ofLog, lines: () => linesOf(log) })
}
