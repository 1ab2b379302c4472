/** The pattern of record types (docs/FORMAT.md, Header), for regular expressions and JSON Schema. */
export const recordTypePattern = '[a-z0-9_./-]{1,64}'

/** The type of a record if the write has none. */
export const defaultRecordType = 'record'

/** The type of record 0 of every strand. */
export const genesisType = 'sys/genesis'

/** The type of the record by which the old key of a strand introduces the new one. */
export const keyRotateType = 'sys/key_rotate'

export const eraseType = 'sys/erase'

/** The type of the record that ends an import (docs/FORMAT.md, Imported records). */
export const importedType = 'sys/imported'

/** The type of the records of the server log (docs/FORMAT.md, The server log). */
export const headsType = 'sys/heads'

/** The type of the record that stores a refused line of an ingest. */
export const rejectedType = 'ingest/rejected'

/** The pattern of an item in the `types` of a query: a record type, or a prefix with `*`. */
export const queriedTypePattern = '([a-z0-9_./-]{1,64}|[a-z0-9_./-]{0,63}\\*)'

/** The most items in the `types` of a query or stream. */
export const queriedTypesMax = 32

const wholeType = new RegExp(`^${recordTypePattern}$`)
const wholeQueriedType = new RegExp(`^${queriedTypePattern}$`)

/** Whether `text` is a valid record type. */
export function isRecordType(text: string): boolean {
  return wholeType.test(text)
}

/** Whether `text` is a record type, or a prefix with `*`. */
export function isQueriedType(text: string): boolean {
  return wholeQueriedType.test(text)
}

/** Whether only the server may write this type; other writes are refused with `reserved_type`. */
export function isReservedType(type: string): boolean {
  return type.startsWith('sys/') || type.startsWith('auth/') || type.startsWith('edge/')
}

/**
 * Whether a record ends an import of its strand. On the strands of the server (`server::…`), records of this
 * type are about imports of other strands.
 */
export function endsImport(type: string, agent: string): boolean {
  return type === importedType && !agent.startsWith('server::')
}

/** Whether queries and streams exclude this type unless they name it. */
export function isSystemType(type: string): boolean {
  return type.startsWith('sys/') || type.startsWith('edge/')
}

/** Whether a query or stream includes this type. @param types undefined for all except system types */
export function isSelectedType(type: string, types: readonly string[] | undefined): boolean {
  return types === undefined ? !isSystemType(type) : matchesTypes(type, types)
}

/**
 * Whether a row policy applies to records of this type. A policy without types applies to all types except
 * reserved ones. A reserved type only matches a pattern that begins with its prefix: `auth/*`, not `*`.
 */
export function isGranted(type: string, patterns: readonly string[] | undefined): boolean {
  if (isReservedType(type)) return matchesTypes(type, (patterns ?? []).filter(isReservedType))
  return patterns === undefined || matchesTypes(type, patterns)
}

/**
 * Whether `type` matches one of the patterns: `reading` matches itself, `auth/*` all types that begin with
 * `auth/`.
 */
export function matchesTypes(type: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern,
  )
}
