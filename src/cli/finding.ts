/** What one check of `strandfast doctor` found. Only `fail` makes it end with 1. */
export interface Finding {
  level: 'ok' | 'warn' | 'fail'
  /** What was checked, in a word or two. */
  subject: string
  detail: string
}

/** A finding that something is fine. */
export function ok(subject: string, detail: string): Finding {
  return { level: 'ok', subject, detail }
}

/** A finding with which the server runs, but that should be looked at. */
export function warn(subject: string, detail: string): Finding {
  return { level: 'warn', subject, detail }
}

/** A finding with which the server does not run, or not safely. */
export function fail(subject: string, detail: string): Finding {
  return { level: 'fail', subject, detail }
}
