/** What one check of `strandfast doctor` found. Only `fail` makes it end with 1. */
export interface Finding {
  level: 'ok' | 'warn' | 'fail'
  /** What was looked at, in a word or two. */
  subject: string
  detail: string
}

/** A finding that all is well. */
export function ok(subject: string, detail: string): Finding {
  return { level: 'ok', subject, detail }
}

/** A finding that the server runs with, and that wants a look. */
export function warn(subject: string, detail: string): Finding {
  return { level: 'warn', subject, detail }
}

/** A finding that the server does not run with, or not safely. */
export function fail(subject: string, detail: string): Finding {
  return { level: 'fail', subject, detail }
}
