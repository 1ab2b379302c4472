/** What a record type is made of (docs/FORMAT.md, Header), for regular expressions and JSON Schema. */
export const recordTypePattern = '[a-z0-9_./-]{1,64}'

/** The type of a user's record when the write names none. */
export const defaultRecordType = 'record'

/** The type of record 0 of every strand. */
export const genesisType = 'sys/genesis'

/** The type of the record by which a strand's old key names the new one. */
export const keyRotateType = 'sys/key_rotate'

/** The type of the record that says that a body was erased. */
export const eraseType = 'sys/erase'

/** The type of the records of the server log (docs/FORMAT.md, The server log). */
export const headsType = 'sys/heads'

/** The type of the record in which a refused line of an ingest is kept. */
export const rejectedType = 'ingest/rejected'

/** What the `types` of a query can contain, without anchors: a record type, or the beginning of one and `*`. */
export const queriedTypePattern = '([a-z0-9_./-]{1,64}|[a-z0-9_./-]{0,63}\\*)'

const wholeType = new RegExp(`^${recordTypePattern}$`)

/** Whether `text` can be the type of a record. */
export function isRecordType(text: string): boolean {
  return wholeType.test(text)
}

/** Whether only the server may write this type: a user's record that names it is refused, `reserved_type`. */
export function isReservedType(type: string): boolean {
  return type.startsWith('sys/') || type.startsWith('auth/') || type.startsWith('edge/')
}

/** Whether queries leave this type out unless they name it. */
export function isSystemType(type: string): boolean {
  return type.startsWith('sys/') || type.startsWith('edge/')
}

/**
 * Whether a row policy is about records of this type. One that names no types is about all that applications write, and a
 * reserved type is reached only by a pattern that begins with its prefix: `auth/*`, not `*`.
 */
export function isGranted(type: string, patterns: readonly string[] | undefined): boolean {
  if (isReservedType(type)) return matchesTypes(type, (patterns ?? []).filter(isReservedType))
  return patterns === undefined || matchesTypes(type, patterns)
}

/** Whether one of the patterns names `type`: `reading` names itself, `auth/*` all that begin with `auth/`. */
export function matchesTypes(type: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern,
  )
}
