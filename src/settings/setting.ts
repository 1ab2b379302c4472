import type { Parse } from './parsers.js'

/** One line of the table of settings, which docs/config.md is made from. */
export interface Setting<T> {
  /** The environment variable. */
  name: string
  /** The value when the variable is not set. */
  default: T
  /** The default in words, as documents show it. */
  defaultText: string
  /** What a number counts; absent where the value has no unit. */
  unit?: string
  description: string
  /** What is allowed, in words: shown in a fault. */
  allowed: string
  /** The value is never shown, only its length. */
  secret?: true
  parse: Parse<T>
}

/** One wrong setting: its name, what was given (for a secret only the length) and what is allowed. */
export interface SettingFault {
  name: string
  given: string
  allowed: string
}

/** Environment variables by name. */
export type Environment = Record<string, string | undefined>

/** Gives the value of a setting, or its default where the variable is not set or is wrong. */
export type ValueOf = <T>(from: Setting<T>) => T

/** What the settings of a table are set to, by their names there; one that has no value is absent. */
export type SettingValues<Table> = {
  readonly [Name in keyof Table as undefined extends Value<Table[Name]> ? never : Name]: Value<Table[Name]>
} & {
  readonly [Name in keyof Table as undefined extends Value<Table[Name]> ? Name : never]?: Exclude<
    Value<Table[Name]>,
    undefined
  >
}

type Value<Line> = Line extends Setting<infer T> ? T : never

/** Reads the settings of a table. */
export function valuesOf<Table extends Readonly<Record<string, Setting<unknown>>>>(
  table: Table,
  value: ValueOf,
): SettingValues<Table>
export function valuesOf(table: Readonly<Record<string, Setting<unknown>>>, value: ValueOf): object {
  const values = Object.entries(table).map(([name, line]) => [name, value(line)] as const)
  return Object.fromEntries(values.filter(([, found]) => found !== undefined))
}

type SettingLine<T> = Omit<Setting<T>, 'defaultText'> & { defaultText?: string }

/** Makes a line of the table; the default in words is that of the value unless it has words of its own. */
export function setting<T>(line: SettingLine<T>): Setting<T> {
  const { default: value } = line
  const unset = value === undefined || (Array.isArray(value) && value.length === 0)
  return { defaultText: unset ? 'none' : String(value), ...line }
}

/** Characters of a wrong value that a fault shows. */
const GIVEN_CHARS_MAX = 100

/** What to do about a path that begins with `~`. */
export const homeHint =
  'a shell replaces ~ only outside of quotes: write $HOME, or ./~ for a folder of that name'

/** A wrong value as a fault shows it: truncated, and for a secret only its length. */
export function describeGiven(secret: true | undefined, text: string): string {
  if (text === '') return 'an empty text'
  // A seed may have been put into another setting by mistake, such as SERVICE_MASTER_SEED_FILE.
  if (secret === true || /^[0-9a-f]{64}$/i.test(text)) return `${text.length} characters`
  const shown = text.slice(0, GIVEN_CHARS_MAX)
  const more = shown === text ? '' : ` and ${text.length - shown.length} characters more`
  return `${JSON.stringify(shown)}${more}${text.startsWith('~') ? ` (${homeHint})` : ''}`
}

/** A setting as administrators are shown it. */
export interface ShownSetting {
  readonly name: string
  /** The text that it was given; absent where it was not, and for a secret. */
  readonly given?: string
  /** The default in words. */
  readonly byDefault: string
  readonly isSecret: boolean
  readonly isSet: boolean
}

/** What a seed looks like. One that was put into a setting for another text by mistake is not shown. */
const seedPattern = /^\s*[0-9a-f]{64}\s*$/i

/**
 * The settings of an environment without their secrets. What is shown is the text that was given and never a parsed
 * value, which may hold what a file contains. Of a public key nothing is shown: it looks like a seed.
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
