/** The exit codes of the command line (docs/OPERATIONS.md, Command line). */
export const exitCodes = {
  fine: 0,
  foundWrong: 1,
  /** A file that is named cannot be read (EX_NOINPUT of sysexits.h). */
  noInput: 66,
  /** The server is away or busy: try again (EX_TEMPFAIL of sysexits.h). */
  tryAgain: 75,
  /** Wrong settings, wrong usage, or a data directory that cannot be used. */
  configuration: 78,
} as const
