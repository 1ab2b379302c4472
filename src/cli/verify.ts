import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import { isFileSystemError } from '../base/durable-file.js'
import type { ExportFault, VerifiedExport } from '../proof/export-check.js'
import { command, fail, exitCodes, renamedOption } from './command.js'
import { describeError, printableLines } from './printable.js'
import { startProgress } from './progress.js'
import { splitLines } from './split-lines.js'
import { unpacked } from './unpacked.js'
import { verifySegments } from './verify-segments.js'
import { limits } from '../base/limits/limits.js'
import { readBounded } from '../base/bounded-file.js'
import { compareWithCheckpoint, type Comparison } from '../proof/node/compare-checkpoint.js'
import { verifyExport } from '../proof/node/verify-export.js'

const USAGE = `Usage: strandfast verify FILE --public-key HEX [--strand HEX] [--fast]
       [--checkpoint OLD [--log LOGFILE [--log-key HEX]]]
Checks an export without a server. FILE is an export, which may be gzipped, or - for standard input. --public-key is that of the
agent.
--strand is the id of the strand as noted when it was first seen. Without --strand, any strand that the key has signed is accepted:
the owner of the key can begin another strand with it, for an agent of the same name.
--checkpoint also checks that the strand begins with the records of the checkpoint in the file OLD. A later key of the strand may
have signed OLD; FILE must then include the rotation to that key. If OLD is a checkpoint of the server log, LOGFILE is an
export of that log from its first record.
By default, every hash, body and signature is checked: each record is signed, alone or by the seal of its group.
--fast checks every hash, including those of bodies, but only the signatures of the first record, of each key rotation and of the
last record. This also proves that no one without the key has changed, removed or inserted a record. It does not prove that
each record has a valid signature, nor that each body is JSON.
`

/** Read size of a file: the cost of one step of the stream does not depend on its size. */
const READ_BYTES = 524_288

/**
 * Checks an export with the agent's public key, without a server (docs/FORMAT.md, Checking an export).
 * @returns the exit code: 0 verified, 1 not verified, 66 a file cannot be read, 78 wrong usage
 */
export const verifyCommand = command({
  usage: USAGE,
  options: {
    'public-key': { type: 'string' },
    /** The former name of `--public-key`. */
    key: { type: 'string' },
    strand: { type: 'string' },
    fast: { type: 'boolean', default: false },
    checkpoint: { type: 'string' },
    log: { type: 'string' },
    'log-key': { type: 'string' },
  },
  operands: true,
  read(values, [file, ...more]): VerifyRequest | string {
    const publicKey = renamedOption(values, 'key', 'public-key')?.toLowerCase() ?? ''
    if (file === undefined || more.length > 0) return 'Expected one FILE'
    if (!/^[0-9a-f]{64}$/.test(publicKey)) return 'Expected --public-key to be 64 hex digits'
    const strand = values.strand?.toLowerCase()
    if (strand !== undefined && !/^[0-9a-f]{64}$/.test(strand))
      return 'Expected --strand to be the id of a strand, 64 hex digits'
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
    if (!result.ok) return print(describeFault(result), exitCodes.foundWrong)
    if (past === undefined) return print(describe(result, fast), exitCodes.fine)
    const compared = await compareExport(past, { file, verified: result }, (path) =>
      splitLines(openExport(path)),
    )
    return compared.ok
      ? print(`${describe(result, fast)}compared    ${compared.shown}\n`, exitCodes.fine)
      : print(`NOT VERIFIED: ${compared.reason}\n`, exitCodes.foundWrong)
  } catch (error) {
    progress.end()
    const reason = describeError(error)
    // A mistyped file name is not a fault of the export.
    if (isFileSystemError(error)) return fail(`Nothing was verified: ${reason}`, exitCodes.noInput)
    return print(`NOT VERIFIED: the export cannot be read: ${reason}\n`, exitCodes.foundWrong)
  }
}

function print(text: string, exitCode: number): number {
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
  if (result.imported > 0) {
    lines.push(
      `IMPORTED: another server wrote the first ${result.imported} records of the strand; this server has verified and imported them`,
    )
  }
  if (result.unexplained !== undefined) {
    const { count, firstSeq } = result.unexplained
    lines.push(
      `UNEXPLAINED: the file has no sys/erase for ${count} of the erased records, the first of them record ${firstSeq};`,
      'they were erased after the last record of the file, or their bodies were removed from the file',
    )
  }
  if (fast) {
    lines.push(
      'FAST: every hash and body was checked, and the signature of the last record, which covers all records before it; not',
      'checked: the signatures of the other records',
    )
  }
  if (result.partial) {
    lines.push(
      `PARTIAL: records before seq ${result.firstSeq} were not checked; an export from seq 0 proves the whole strand`,
    )
  }
  return `${lines.join('\n')}\n`
}

function describeFault(fault: ExportFault): string {
  const record = fault.seq === undefined ? '' : `record ${fault.seq}, `
  return `NOT VERIFIED: ${record}line ${fault.line}: ${fault.reason}\n`
}

interface PastCheckpoint {
  checkpoint: string
  /** An export of the server log; undefined if the checkpoint is one of the strand itself. */
  log: string | undefined
  logKey: string | undefined
}

/** Reads the options about a checkpoint. @returns undefined if none is given, a text if they are wrong */
function readCheckpointOptions(
  file: string,
  values: Partial<Record<'checkpoint' | 'log' | 'log-key', string>>,
): PastCheckpoint | undefined | string {
  const { checkpoint, log } = values
  const logKey = values['log-key']?.toLowerCase()
  if (checkpoint === undefined) {
    return log === undefined && logKey === undefined
      ? undefined
      : 'Expected --checkpoint together with --log or --log-key'
  }
  if (log === undefined && logKey !== undefined) return 'Expected --log together with --log-key'
  if (file === '-' || log === '-')
    return 'Expected FILE and --log to be files with --checkpoint, not -: they are read twice'
  if (logKey !== undefined && !/^[0-9a-f]{64}$/.test(logKey)) {
    return 'Expected --log-key to be a public key of 64 hex digits'
  }
  return { checkpoint, log, logKey }
}

/**
 * Compares a verified export with an earlier checkpoint. An export of the server log is verified first.
 * @throws Error if a file cannot be read
 */
async function compareExport(
  past: PastCheckpoint,
  { file, verified }: { file: string; verified: VerifiedExport },
  linesOf: (file: string) => AsyncIterable<string>,
): Promise<Comparison> {
  const checkpoint = readBounded(past.checkpoint, limits.smallFileBytesMax)
  if (!isUtf8(checkpoint)) return { ok: false, reason: 'The checkpoint is not UTF-8 text' }
  const note = checkpoint.toString('utf8')
  const strand = { verified, lines: () => linesOf(file) }
  const { log, logKey } = past
  if (log === undefined) return compareWithCheckpoint(strand, note)
  const verifiedLog = await verifyLog(linesOf(log), logKey)
  if (!verifiedLog.ok) return verifiedLog
  return compareWithCheckpoint(strand, note, { verified: verifiedLog, lines: () => linesOf(log) })
}

/** Verifies an export of the server log. @throws Error of the file system */
async function verifyLog(
  lines: AsyncIterable<string>,
  publicKey: string | undefined,
): Promise<VerifiedExport | { ok: false; reason: string }> {
  try {
    const result = await verifyExport(lines, publicKey === undefined ? {} : { publicKey })
    return result.ok ? result : { ok: false, reason: `The server log: line ${result.line}: ${result.reason}` }
  } catch (error) {
    if (isFileSystemError(error)) throw error
    return { ok: false, reason: `The server log cannot be read: ${describeError(error)}` }
  }
}
