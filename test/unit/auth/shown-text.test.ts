import { describe, expect, it } from 'vitest'
import {
  escapeUnseen,
  hasIgnorable,
  mixesScripts,
  quotedText,
  shownText,
} from '../../../src/auth/shown-text.js'

describe('a text that is shown', () => {
  it.each([
    ['plain text, 1 + 1', 'plain text, 1 + 1'],
    ['naïve 日本 שלום', 'naïve 日本 שלום'],
    ['a\u202eb', 'a\\u202eb'],
    ['a\u200bb\u2060c\u00add', 'a\\u200bb\\u2060c\\u00add'],
    ['a\tb\nc\0', 'a\\u0009b\\u000ac\\u0000'],
    ['a\u00a0b\u3000c', 'a\\u00a0b\\u3000c'],
    ['a\u{e0041}b', 'a\\udb40\\udc41b'],
    ['a\u3164b\ufe0f', 'a\\u3164b\\ufe0f'],
  ])('has invisible characters escaped as in JSON: %j', (text, shown) => {
    expect(escapeUnseen(text)).toBe(shown)
  })

  it('keeps its order and its line breaks, and shows what is invisible', () => {
    expect(shownText('a\u202eb\n\tc\u00a0d ❤\ufe0f 👍🏽')).toBe('a\\u202eb\n\tc\u00a0d ❤\ufe0f 👍🏽')
    for (const unit of [0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2060, 0x2066, 0xfeff, 0xad, 0xfe0f])
      expect(shownText(`admin${String.fromCharCode(unit)}`)).toBe(
        `admin\\u${unit.toString(16).padStart(4, '0')}`,
      )
    expect(shownText('a\u{e0041}')).toBe('a\\udb40\\udc41')
  })

  it('cannot close the quotes around it', () => {
    expect(quotedText('owner" is "you')).toBe('"owner\\" is \\"you"')
    expect(quotedText(['a\u202e', 1, null])).toBe('["a\\u202e",1,null]')
    expect(quotedText(undefined)).toBe('undefined')
    expect(JSON.parse(quotedText('a\u{e0041}\u200b\n'))).toBe('a\u{e0041}\u200b\n')
  })

  it.each([
    ['paypal', false],
    ['pаypal', true],
    ['Анна Smith', false],
    ['ελ-GR', false],
    ['Gооgle keys', true],
    ['東京タワー', false],
    ['漢字abc', true],
    ['user42', false],
  ])('mixes scripts in a word: %s %s', (text, mixes) => {
    expect(mixesScripts(text)).toBe(mixes)
  })

  it('is recognised if it has invisible code points', () => {
    expect(['a', 'é', '👍'].some(hasIgnorable)).toBe(false)
    expect(['a\u200d', '\u3164', '\ufe0f', '\u{e0100}', '\u115f', '\u034f'].every(hasIgnorable)).toBe(true)
  })
})
