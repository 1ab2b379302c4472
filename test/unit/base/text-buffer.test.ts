import { fc } from '../../support/fast-check.js'
import { expect, it } from 'vitest'
import { TextBuffer } from '../../../src/base/text-buffer.js'

const ascii = fc.string({ unit: 'binary-ascii' }).map((text) => ['addAscii', text] as const)
const unicode = fc.string({ unit: 'binary' }).map((text) => ['addText', text] as const)
const bytes = fc.string({ unit: 'binary' }).map((text) => ['addBytes', text] as const)

it('holds what was added, however often it has grown', () => {
  fc.assert(
    fc.property(fc.nat(8), fc.array(fc.oneof(ascii, unicode, bytes)), (space, additions) => {
      const buffer = new TextBuffer(space)
      for (const [add, text] of additions) {
        if (add === 'addBytes') buffer.addBytes(Buffer.from(text))
        else buffer[add](text)
      }
      const expected = Buffer.from(additions.map(([, text]) => text).join(''))
      expect(buffer.bytes).toEqual(expected)
      expect(buffer.length).toBe(expected.length)
    }),
  )
})
