import { describe, expect, it } from 'vitest'
import { folded } from '../../../src/strand/text-match.js'

/** All characters, except the halves of surrogate pairs. */
const characters = Array.from({ length: 0x11_00_00 }, (_none, code) =>
  code >= 0xd8_00 && code <= 0xdf_ff ? '' : String.fromCodePoint(code),
).filter((character) => character !== '')

describe('a folded text', () => {
  it('is the same exactly for the letters that a regular expression takes as the same', () => {
    const cased = characters.filter((one) => one.toLowerCase() !== one || one.toUpperCase() !== one)
    expect(cased.length).toBeGreaterThan(2_500)
    const lines = cased.join('\n')
    for (const one of cased) {
      // With both flags, the engine compares by simple case folding.
      const same = lines.match(new RegExp(`^${one}$`, 'gimu')) ?? []
      expect([one, ...same.filter((other) => folded(other) !== folded(one))]).toEqual([one])
    }
    for (const one of cased) expect(one).toMatch(new RegExp(`^${folded(one)}$`, 'iu'))
    // All others are left alone.
    const set = new Set(cased)
    expect(characters.filter((one) => !set.has(one) && folded(one) !== one)).toEqual([])
  })

  it.each([
    ['ΟΔΟΣ', 'οδος'],
    ['GROẞ', 'groß'],
    ['Kelvin', 'KELVIN'],
    ['ſtraſſe', 'STRASSE'],
  ])('ignores case: %s, %s', (one, other) => expect(folded(one)).toBe(folded(other)))

  it.each([
    ['straße', 'strasse'],
    ['ı', 'i'],
    ['İ', 'i'],
    ['é', 'e'],
  ])('does not join what only some languages take as the same: %s, %s', (one, other) =>
    expect(folded(one)).not.toBe(folded(other)),
  )
})
