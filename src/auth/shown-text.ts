/*
 * Texts that one person chose and another person bases a decision on: e-mails, names, fields and values of
 * rules. A text must not look like another one (Unicode Technical Report 36, Unicode Technical Standard 39).
 */

/**
 * Whether a text has invisible code points: joiners, fillers, selectors and tags
 * (Default_Ignorable_Code_Point).
 */
export function hasIgnorable(text: string): boolean {
  return /\p{Default_Ignorable_Code_Point}/u.test(text)
}

/** Code points that are invisible, change the direction or the line of the text, or look like a space. */
const unseen = /[\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu

/** Escapes such code points as in JSON, so that they are visible. */
export function escapeUnseen(text: string): string {
  return text.replace(unseen, escapedUnits)
}

/**
 * Escapes code points that change the direction of the text around them or are invisible, in a text of any
 * length: a name with one looks like another name. Unlike `escapeUnseen`, it keeps line breaks, spaces, and the
 * selector that makes a symbol an emoji.
 */
export function shownText(text: string): string {
  return text.replace(hidden, escapedUnits)
}

/** Includes U+200B to U+200F, U+202A to U+202E, U+2060 to U+2069 and U+FEFF. */
const hidden =
  /\p{Bidi_Control}|(?!\ufe0f)\p{Default_Ignorable_Code_Point}|(?<!\p{Extended_Pictographic})\ufe0f/gu

function escapedUnits(found: string): string {
  return Array.from({ length: found.length }, (_none, at) => escaped(found.charCodeAt(at))).join('')
}

function escaped(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}

/** A value as JSON on one line, which cannot be confused with the text around it. */
export function quotedText(value: unknown): string {
  return escapeUnseen(JSON.stringify(value) ?? String(value))
}

/** Scripts that are not mixed within a word. Those of Chinese, Japanese and Korean count as one. */
const scripts = [
  /\p{Script=Latin}/u,
  /\p{Script=Cyrillic}/u,
  /\p{Script=Greek}/u,
  /\p{Script=Armenian}/u,
  /\p{Script=Hebrew}/u,
  /\p{Script=Arabic}/u,
  /\p{Script=Georgian}/u,
  /\p{Script=Cherokee}/u,
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}]/u,
]

/** Whether a word of a text mixes letters of several scripts, some of which look alike. */
export function mixesScripts(text: string): boolean {
  return text
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .some((word) => scripts.filter((script) => script.test(word)).length > 1)
}
