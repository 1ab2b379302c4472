import type { Environment, Setting } from './setting.js'

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
