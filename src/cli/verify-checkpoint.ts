import { limits } from '../base/limits/limits.js'
import { readBounded } from '../base/bounded-file.js'
import { compareWithCheckpoint, type Comparison } from '../proof/node/compare-checkpoint.js'
import type { VerifiedExport } from '../proof/export-check.js'
import { verifyExport } from '../proof/node/verify-export.js'

/** The options of `verify` that are about an earlier checkpoint. */
export const checkpointOptions = {
  checkpoint: { type: 'string' },
  log: { type: 'string' },
  'log-key': { type: 'string' },
} as const

export const CHECKPOINT_USAGE = `       [--checkpoint OLD [--log LOGFILE [--log-key HEX]]]
--checkpoint also shows that the strand begins with the records of the checkpoint in the file OLD. A later key of the
strand may have signed it, as those of answers as of a moment: FILE then holds the rotation to that key. Where OLD is one
of the server log, LOGFILE is an export of that log from its first record.
`

/** Which checkpoint an export is to be compared with. */
export interface CheckpointAsked {
  checkpoint: string
  log: string | undefined
  logKey: string | undefined
}

type Values = Partial<Record<'checkpoint' | 'log' | 'log-key', string>>

/** Reads these options; undefined when none is given, a text when they are wrong. */
export function readCheckpointOptions(file: string, values: Values): CheckpointAsked | undefined | string {
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
export async function compareExport(
  asked: CheckpointAsked,
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
