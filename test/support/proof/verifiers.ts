import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { splitLines } from '../../../src/cli/split-lines.js'
import type * as VerifySegments from '../../../src/cli/verify-segments.js'
import { verifyExport as verifyInClient } from '../../../src/client/index.js'
import { compareWithCheckpoint } from '../../../src/proof/node/compare-checkpoint.js'
import { verifyExport } from '../../../src/proof/node/verify-export.js'

// Its threads run from the build.
const built = new URL('../../../dist/src/cli/verify-segments.js', import.meta.url)
const { verifySegments }: typeof VerifySegments = await import(built.href)

/** An export, and the values that the verifier trusts. */
export interface Case {
  file: Uint8Array
  publicKey?: string | undefined
  strand?: string | undefined
  /** An earlier checkpoint of the strand, or of the log. */
  note?: string | undefined
  /** An export of the server log, if the checkpoint is of the log. */
  log?: Uint8Array | undefined
  logKey?: string | undefined
}

/** The result of a verifier. */
export interface Verdict {
  ok: boolean
  reason?: string
  /** Erased records that no `sys/erase` record names. */
  unexplained?: number
  /** The first records that were imported. */
  imported?: number
}

const examples = join(import.meta.dirname, '../../../examples')
const batch = join(import.meta.dirname, 'verify-batch.py')
const hasEd25519 = (python: string) => spawnSync(python, ['-c', 'import cryptography']).status === 0

/** A Python with Ed25519; undefined if there is none, which is an error in CI. */
export const python = ['python3', '/usr/bin/python3'].find(hasEd25519)
if (python === undefined) {
  if (process.env['CI'] === 'true') throw new Error('Expected a python3 with the package cryptography')
  console.warn('Skipped in part: no cryptography in python3')
}

const linesOf = (bytes: Uint8Array) => splitLines(Readable.from([bytes]))

/** The result of the command line: in threads if the export is long, and line by line with a log. */
export async function byCommandLine(one: Case, fast = false): Promise<Verdict> {
  const { publicKey: trustedKey, strand } = one
  try {
    const verified = await verifySegments(Readable.from([one.file]), { trustedKey, strand, fast })
    if (!verified.ok) return verified
    if (one.note === undefined) return verdictOf(verified)
    const compared = await compareByLines(one, verified)
    return compared.ok ? verdictOf(verified) : compared
  } catch (error) {
    return { ok: false, reason: String(error) }
  }
}

function verdictOf({ unexplained, imported }: Pick<Verified, 'unexplained' | 'imported'>): Verdict {
  return { ok: true, unexplained: unexplained?.count ?? 0, imported }
}

type Verified = Extract<Awaited<ReturnType<typeof verifySegments>>, { ok: true }>

async function compareByLines({ file, note = '', log, logKey }: Case, verified: Verified): Promise<Verdict> {
  const strand = { verified, lines: () => linesOf(file) }
  if (log === undefined) return compareWithCheckpoint(strand, note)
  const ofLog = await verifyExport(linesOf(log), { publicKey: logKey })
  if (!ofLog.ok) return { ok: false, reason: `The server log: ${ofLog.reason}` }
  return compareWithCheckpoint(strand, note, { verified: ofLog, lines: () => linesOf(log) })
}

/** The result of the check line by line, which the import uses. */
export async function byLines({ file, publicKey, strand }: Case): Promise<Verdict> {
  try {
    const found = await verifyExport(linesOf(file), { publicKey, strand })
    return found.ok ? verdictOf(found) : found
  } catch (error) {
    return { ok: false, reason: String(error) }
  }
}

/** The result of the client, which cannot compare with a log. */
export async function byClient({ file, publicKey, strand, note }: Case): Promise<Verdict> {
  const found = await verifyInClient([file], { publicKey, strand, kept: note })
  return found.ok ? verdictOf(found) : found
}

/** The results of examples/verify.py for many cases. */
export function byPython(cases: readonly Case[]): Verdict[] {
  if (python === undefined) return []
  const base64 = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString('base64')
  const input = cases.map(({ file, publicKey, strand, note, log, logKey }) =>
    JSON.stringify({
      file: base64(file),
      key: publicKey,
      strand: strand?.toLowerCase(),
      note,
      log: base64(log),
      log_key: logKey,
    }),
  )
  const { stdout, stderr, status } = spawnSync(python, ['-B', batch, join(examples, 'verify.py')], {
    input: input.join('\n'),
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (status !== 0) throw new Error(stderr)
  return stdout
    .trimEnd()
    .split('\n')
    .map((line): Verdict => JSON.parse(line))
}
