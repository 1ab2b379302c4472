/**
 * Test files that `npm test` leaves out, because they take long, or load the machine for longer than a moment. CI runs all
 * of them, and so does `npm run test:faults` those of test/faults; a file that is named on the command line runs in any
 * form. Beside each stands what `npm test` runs of its kind.
 */
export const ciOnly: Readonly<Record<string, string>> = {
  'attacks/imports': 'attacks/tiny-chunks, attacks/queries',
  'attacks/ingest': 'attacks/tiny-chunks, attacks/queries',
  'attacks/routes': 'attacks/before-the-limiter, attacks/queries',
  'attacks/slow-readers': 'attacks/streams',
  'e2e/backup-load': 'e2e/restore, faults/restore-steps',
  'e2e/reshard-imported': 'e2e/reshard',
  'faults/auth-crash': 'faults/crash, faults/organism-crash',
  'faults/backup-space': 'faults/full-disk',
  'faults/hung-threads': 'threads/thread-watch, threads/shard-death',
  'faults/idle-connections': 'attacks/streams, faults/descriptors',
  'faults/import-crash': 'faults/crash, routes/strand-import/unfinished',
  'faults/no-descriptors': 'faults/descriptors',
  'faults/slow-clients': 'faults/ended-downloads, faults/ended-uploads',
  'faults/slow-streams': 'attacks/streams, unit/http/unsent',
  'faults/soak': 'faults/descriptors, unit/scripts/soak-judge',
  'unit/cli/bench': 'unit/bench/bench',
}

/** The patterns of files that a run leaves out: none in the long forms, nor where files are named. */
export function leftToCi(
  env: Readonly<Record<string, string | undefined>>,
  argv: readonly string[],
): string[] {
  const isLong = env['CI'] === 'true' || (env['STRANDFAST_FAULTS'] ?? 'short') !== 'short'
  const isNamed = argv.some((argument) => argument.endsWith('.test.ts'))
  return isLong || isNamed ? [] : Object.keys(ciOnly).map((name) => `test/${name}.test.ts`)
}
