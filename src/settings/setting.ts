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
