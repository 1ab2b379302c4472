/**
 * Letters in lower case that fold to another letter, because both have the same upper case or are the same
 * letter encoded twice: each before what it folds to. A test compares them with the tables of the engine.
 */
const variants =
  'ςσ \u1fd3\u0390 \u1fe3\u03b0 \ufb05\ufb06 \u00b5μ ſs \u0345ι ϐβ ϑθ ϕφ ϖπ ϰκ ϱρ ϵε ᲀв ᲁд ᲂо ᲃс ᲄт ᲅт ᲆъ ᲇѣ ᲈꙋ ẛṡ \u1fbeι'

const folds = new Map(variants.split(' ').map(([letter = '', fold = '']) => [letter, fold]))
const letters = new RegExp(`[${[...folds.keys()].join('')}]`, 'gu')

/** A letter that folds to itself, although its lower case is another one. */
const DOTTED_I = 'İ'

/**
 * A text in which letters that differ only in case are the same: simple case folding as in Unicode's
 * CaseFolding.txt (statuses C and S), which knows no languages. `ß` and `ss` stay different.
 */
export function folded(text: string): string {
  if (/^[\0-\x7f]*$/.test(text)) return text.toLowerCase()
  const parts = text.split(DOTTED_I).map((part) => part.toLowerCase())
  return parts.join(DOTTED_I).replace(letters, (letter) => folds.get(letter) ?? letter)
}
