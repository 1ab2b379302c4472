import { readFileSync } from 'node:fs'

/** A checkpoint, the export to compare it with, and the expected result. */
export interface CheckpointVector {
  name: string
  /** The name of the export. */
  export: string
  /** The trusted key. */
  public_key: string
  note: string
  expected: { ok: true; size: number } | { ok: false; reason: string }
}

const vectors: { exports: Record<string, string[]>; cases: CheckpointVector[] } = JSON.parse(
  readFileSync(new URL('../../vectors/checkpoints.json', import.meta.url), 'utf8'),
)

/** The frozen vectors of checkpoints before and after rotations. */
export const checkpointVectors = vectors.cases

/** The export of a vector, its lines without LF. */
export function vectorExport(name: string): string[] {
  const lines = vectors.exports[name]
  if (lines === undefined) throw new Error(`Export "${name}" not found in the vectors`)
  return lines
}
