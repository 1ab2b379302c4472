import { createReadStream } from 'node:fs'
import { parseArgs } from 'node:util'
import { createGunzip } from 'node:zlib'
import { type ExportFault, type VerifiedExport, verifyExport } from '../strand/verify-export.js'
import { splitLines } from './split-lines.js'

const USAGE =
  'Usage: strandfast verify FILE --key HEX, FILE being an export (.gz too) or - for standard input\n'

/** Records between two lines of progress where standard error is no terminal. */
const PROGRESS_RECORDS = 100_000
/** The same on a terminal, which one line serves. */
const PROGRESS_RECORDS_TERMINAL = 10_000

/**
 * Checks an export offline: needs nothing but the file and the agent's public key (contract.md 8).
 * @returns the exit code: 0 fine, 1 found wrong or unreadable, 78 wrong usage
 */
export async function verifyCommand(args: string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(USAGE)
    return 0
  }
  const asked = readArguments(args)
  if (typeof asked === 'string') {
    process.stderr.write(`${asked}\n${USAGE}`)
    return 78
  }
  try {
    const lines = splitLines(openExport(asked.file))
    const result = await verifyExport(lines, { publicKey: asked.publicKey, onProgress: showProgress })
    // The line of progress on a terminal has no end of its own.
    if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
    process.stdout.write(result.ok ? describe(result) : describeFault(result))
    return result.ok ? 0 : 1
  } catch (error) {
    process.stdout.write(
      `NOT VERIFIED: the export cannot be read: ${error instanceof Error ? error.message : error}\n`,
    )
    return 1
  }
}

/** What is to be checked against which key; a text says which argument is wrong. */
function readArguments(args: string[]): { file: string; publicKey: string } | string {
  try {
    const { values, positionals } = parseArgs({
      args,
      options: { key: { type: 'string' } },
      allowPositionals: true,
    })
    const [file, ...more] = positionals
    const publicKey = values.key?.toLowerCase() ?? ''
    if (file === undefined || more.length > 0) return 'Expected one FILE'
    if (!/^[0-9a-f]{64}$/.test(publicKey)) return 'Expected --key to be a public key of 64 hex digits'
    return { file, publicKey }
  } catch (error) {
    return error instanceof Error ? error.message : 'Expected FILE and --key'
  }
}

function openExport(file: string): AsyncIterable<Buffer> {
  const source = file === '-' ? process.stdin : createReadStream(file)
  if (!file.endsWith('.gz')) return source
  const unzipped = createGunzip()
  source.on('error', (error: Error) => unzipped.destroy(error))
  return source.pipe(unzipped)
}

function showProgress(records: number): void {
  if (process.stderr.isTTY) {
    if (records % PROGRESS_RECORDS_TERMINAL === 0) process.stderr.write(`\r${records} records checked`)
  } else if (records % PROGRESS_RECORDS === 0) process.stderr.write(`${records} records checked\n`)
}

function describe(result: VerifiedExport): string {
  const withheld = result.withheld > 0 ? `, ${result.withheld} withheld` : ''
  const lines = [
    `VERIFIED ${result.records} records of ${result.agent}, seq ${result.firstSeq} to ${result.lastSeq}`,
    `strand      ${result.strand}`,
    `chain head  ${result.chainHead}`,
    `key         ${result.publicKey}${result.keys > 1 ? ` (after ${result.keys - 1} rotations)` : ''}`,
    `signatures  ${result.signaturesChecked} checked; ${result.sealed} records sealed by them, ${result.erased} erased${withheld}`,
    `checkpoint  ${result.checkpoint ? 'checked' : 'none'}`,
  ]
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
