import type { Parse } from './parsers.js'

/** One row of the table of settings, the source of docs/config.md. */
export interface Setting<T> {
  /** The environment variable. */
  name: string
  /** The value if the variable is not set. */
  default: T
  /** The default in words. */
  defaultText: string
  /** The unit of a number; absent if it has none. */
  unit?: string
  description: string
  /** The allowed values in words. */
  allowed: string
  /** Faults show only the length of the value. */
  secret?: true
  parse: Parse<T>
}

/** A wrong setting: its name, the given value (for a secret, only its length) and the allowed values. */
export interface SettingFault {
  name: string
  given: string
  allowed: string
}

/** Environment variables by name. */
export type Environment = Record<string, string | undefined>

/** Returns the value of a setting, or its default if the variable is not set or wrong. */
export type ValueOf = <T>(from: Setting<T>) => T

/** The values of the settings of a table, by their names; a setting without a value is absent. */
export type SettingValues<Table> = {
  readonly [Name in keyof Table as undefined extends Value<Table[Name]> ? never : Name]: Value<Table[Name]>
} & {
  readonly [Name in keyof Table as undefined extends Value<Table[Name]> ? Name : never]?: Exclude<
    Value<Table[Name]>,
    undefined
  >
}

type Value<Row> = Row extends Setting<infer T> ? T : never

export function valuesOf<Table extends Readonly<Record<string, Setting<unknown>>>>(
  table: Table,
  value: ValueOf,
): SettingValues<Table>
export function valuesOf(table: Readonly<Record<string, Setting<unknown>>>, value: ValueOf): object {
  const values = Object.entries(table).map(([name, row]) => [name, value(row)] as const)
  return Object.fromEntries(values.filter(([, found]) => found !== undefined))
}

type SettingRow<T> = Omit<Setting<T>, 'defaultText'> & { defaultText?: string }

/** Creates a row of the table. Without `defaultText`, the default in words is the text of the value. */
export function setting<T>(row: SettingRow<T>): Setting<T> {
  const { default: value } = row
  const isEmpty = value === undefined || (Array.isArray(value) && value.length === 0)
  return { defaultText: isEmpty ? 'none' : String(value), ...row }
}

/** Characters of a wrong value that a fault shows. */
const GIVEN_CHARS_MAX = 100

/** The hint for a path that begins with `~`. */
export const homeHint =
  'a shell replaces ~ only outside of quotes: write $HOME, or ./~ for a folder of that name'

/** Describes a wrong value in a fault: truncated, and for a secret only its length. */
export function describeGiven(secret: true | undefined, text: string): string {
  if (text === '') return 'an empty text'
  // A seed may be in the wrong setting by mistake, such as SERVICE_MASTER_SEED_FILE.
  if (secret === true || /^[0-9a-f]{64}$/i.test(text)) return `${text.length} characters`
  const shown = text.slice(0, GIVEN_CHARS_MAX)
  const more = shown === text ? '' : ` and ${text.length - shown.length} characters more`
  return `${JSON.stringify(shown)}${more}${text.startsWith('~') ? ` (${homeHint})` : ''}`
}

export interface ShownSetting {
  readonly name: string
  /** The given text; absent if it is not set or secret. */
  readonly given?: string
  /** The default in words. */
  readonly byDefault: string
  readonly isSecret: boolean
  readonly isSet: boolean
}

/** A text that looks like a seed, which may be in the wrong setting by mistake, is not shown. */
const seedPattern = /^\s*[0-9a-f]{64}\s*$/i

/**
 * The settings of an environment without secrets. Parsed values are never shown, because they may contain the
 * content of a file. Public keys are not shown either, because they look like seeds.
 */
export function shownSettings(list: readonly Setting<unknown>[], env: Environment): readonly ShownSetting[] {
  const shown = list.map(({ name, defaultText, secret }): ShownSetting => {
    const text = env[name]
    const isSecret = secret === true
    const isShown = text !== undefined && !isSecret && !seedPattern.test(text)
    return Object.freeze({
      name,
      ...(isShown && { given: text }),
      byDefault: defaultText,
      isSecret,
      isSet: text !== undefined,
    })
  })
  return Object.freeze(shown)
}
