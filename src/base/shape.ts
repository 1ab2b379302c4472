/* Type guards for values from other threads, which are `unknown` until they are checked. */

export type Check<Found> = (value: unknown) => value is Found

export const isText: Check<string> = (value) => typeof value === 'string'
export const isNumber: Check<number> = (value) => typeof value === 'number'
export const isFlag: Check<boolean> = (value) => typeof value === 'boolean'
export const isBytes: Check<Uint8Array> = (value) => value instanceof Uint8Array

export const isTrue: Check<true> = (value): value is true => value === true
export const isObject: Check<Record<string, unknown>> = (value): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The largest number that the keys of the store can hold. */
export const keyNumberMax = 2 ** 48 - 1

/** A number that fits the keys of the store: a seq or a time. */
export const isKeyNumber: Check<number> = (value): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= keyNumberMax

/** 32 bytes in hex: a hash or a public key. */
export const isHash: Check<string> = (value): value is string => isText(value) && /^[0-9a-f]{64}$/.test(value)

/** Numbers by name. */
export const isCounts: Check<Record<string, number>> = (value): value is Record<string, number> =>
  isObject(value) && Object.values(value).every(isKeyNumber)

/** A text of at most `charsMax` characters. */
export function textUpTo(charsMax: number): Check<string> {
  return (value): value is string => isText(value) && value.length <= charsMax
}

/** A text that fits a key of the store, in UTF-8 and with others beside it. */
export const isKeyText = textUpTo(512)

export function oneOf<Text extends string>(...texts: readonly Text[]): Check<Text> {
  const known: ReadonlySet<unknown> = new Set(texts)
  return (value): value is Text => known.has(value)
}

/** A list whose elements all pass the check. */
export function listOf<Found>(check: Check<Found>): Check<Found[]> {
  return (value): value is Found[] => Array.isArray(value) && value.every(check)
}

/** `undefined`, or a value that passes the check. */
export function optional<Found>(check: Check<Found>): Check<Found | undefined> {
  return (value): value is Found | undefined => value === undefined || check(value)
}

/** A value that passes one of the checks. */
export function anyOf<Found extends readonly unknown[]>(
  ...checks: { readonly [At in keyof Found]: Check<Found[At]> }
): Check<Found[number]> {
  return (value): value is Found[number] => checks.some((check) => check(value))
}

export type Checked<C> = C extends Check<infer Found> ? Found : never

/** JSON has no `undefined`: an optional member is either absent or set. */
type Fields<Checks> = Flat<
  {
    [Name in keyof Checks as undefined extends Checked<Checks[Name]> ? never : Name]: Checked<Checks[Name]>
  } & {
    [Name in keyof Checks as undefined extends Checked<Checks[Name]> ? Name : never]?: Exclude<
      Checked<Checks[Name]>,
      undefined
    >
  }
>
type Flat<T> = { [Name in keyof T]: T[Name] }

/** An object whose members pass the checks; its type is inferred from them. Further members are allowed. */
export function fields<Checks extends Readonly<Record<string, Check<unknown>>>>(
  checks: Checks,
): Check<Fields<Checks>> {
  const holds = eachOf(checks)
  return (value): value is Fields<Checks> => holds(value)
}

/** An object of a declared type whose members pass the checks. Further members are allowed. */
export function members<Found extends object>(checks: {
  [Name in keyof Found]-?: object extends Pick<Found, Name>
    ? Check<Found[Name] | undefined>
    : Check<Found[Name]>
}): Check<Found> {
  const holds = eachOf(checks)
  return (value): value is Found => holds(value)
}

function eachOf(checks: object): (value: unknown) => boolean {
  const all: [string, (value: unknown) => boolean][] = Object.entries(checks)
  return (value) => {
    if (typeof value !== 'object' || value === null) return false
    const own = new Map<string, unknown>(Object.entries(value))
    return all.every(([name, check]) => check(own.get(name)))
  }
}

/**
 * A message of a union, by its `kind`. Its sender was compiled with this code, so the other members are not
 * checked.
 * @param kinds the `kind` of each member
 */
export function hasKind<Message extends { kind: string }>(
  kinds: Readonly<Record<Message['kind'], true>>,
): Check<Message> {
  return (value): value is Message =>
    typeof value === 'object' &&
    value !== null &&
    'kind' in value &&
    isText(value.kind) &&
    Object.hasOwn(kinds, value.kind)
}
