import { readFileSync } from 'node:fs'

/** A checkpoint, the export to compare it with, and what that shows. */
export interface CheckpointVector {
  name: string
  /** Which of the exports. */
  export: string
  /** The key that is trusted. */
  public_key: string
  note: string
  expected: { ok: true; size: number } | { ok: false; reason: string }
}

const vectors: { exports: Record<string, string[]>; cases: CheckpointVector[] } = JSON.parse(
  readFileSync(new URL('../../vectors/checkpoints.json', import.meta.url), 'utf8'),
)

/** The frozen vectors of checkpoints from before and behind rotations. */
export const checkpointVectors = vectors.cases

/** The export of a vector, its lines without LF. */
export function vectorExport(name: string): string[] {
  const lines = vectors.exports[name]
  if (lines === undefined) throw new Error(`Expected an export of the vectors, got "${name}"`)
  return lines
}
