import { describe, expect, it } from 'vitest'
import { keyPairFromSeed, signText } from '../../../src/strand/keys.js'
import { verifyText } from '../../support/proof/verify-text.js'
import { verifyCheckpoint } from '../../../src/proof/node/compare-checkpoint.js'
import { parseCheckpoint } from '../../../src/proof/note.js'
import { signCheckpoint } from '../../../src/strand/checkpoint.js'

const master = Buffer.alloc(32, 1)
const seed = Buffer.alloc(32, 2)

describe('a signature', () => {
  const keys = keyPairFromSeed(seed)
  const signature = signText(keys.secretKey, 'text')

  it('verifies for its text and key only', () => {
    expect(verifyText(keys.publicKey, 'text', signature)).toBe(true)
    expect(verifyText(keys.publicKey, 'text ', signature)).toBe(false)
    expect(verifyText(keyPairFromSeed(master).publicKey, 'text', signature)).toBe(false)
  })

  it('does not verify, and does not throw, when the key or the signature is malformed', () => {
    expect(verifyText('', 'text', signature)).toBe(false)
    expect(verifyText(`${keys.publicKey}00`, 'text', signature)).toBe(false)
    expect(verifyText('0'.repeat(64), 'text', signature)).toBe(false)
    expect(verifyText(keys.publicKey, 'text', signature.subarray(1))).toBe(false)
    expect(verifyText(keys.publicKey, 'text', Buffer.alloc(64))).toBe(false)
  })
})

describe('a checkpoint note', () => {
  const keys = keyPairFromSeed(seed)
  const checkpoint = { origin: `strandfast/${'a'.repeat(64)}`, size: 12, rootHex: 'b'.repeat(64) }
  const note = signCheckpoint(checkpoint, keys)

  it('is only parsed with the key that signed it', () => {
    expect(verifyCheckpoint(note, keys.publicKey)).toStrictEqual(checkpoint)
    expect(verifyCheckpoint(note, keyPairFromSeed(master).publicKey)).toBeUndefined()
    expect(verifyCheckpoint(note, 'not a key')).toBeUndefined()
  })

  it('is refused with any character of its text changed', () => {
    for (let at = 0; at < note.length - 1; at += 1) {
      const changed = note.slice(0, at) + (note[at] === '1' ? '2' : '1') + note.slice(at + 1)
      expect(verifyCheckpoint(changed, keys.publicKey)).toBeUndefined()
    }
  })

  it('may have signatures of witnesses', () => {
    const witness = `\u2014 witness.example/w1 ${Buffer.alloc(76, 5).toString('base64')}\n`
    expect(verifyCheckpoint(note + witness, keys.publicKey)).toStrictEqual(checkpoint)
    expect(parseCheckpoint(note + witness)?.signatures).toHaveLength(2)
  })

  it('is refused without its empty line, its end or its signature', () => {
    for (const text of [
      '',
      note.replace('\n\n', '\n'),
      note.trimEnd(),
      note.slice(0, note.indexOf('\u2014')),
    ]) {
      expect(parseCheckpoint(text)).toBeUndefined()
    }
  })
})
