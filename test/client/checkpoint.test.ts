import { describe, expect, it } from 'vitest'
import { webCryptoJobs } from '../../src/client/webcrypto.js'
import { runAsync } from '../../src/proof/job.js'
import { verifyCheckpoint as verifyInServer } from '../../src/proof/node/compare-checkpoint.js'
import { verifyCheckpoint } from '../../src/proof/note.js'
import { signCheckpoint } from '../../src/strand/checkpoint.js'
import { keyPairFromSeed } from '../../src/strand/keys.js'

const keys = keyPairFromSeed(Buffer.alloc(32, 3))
const checkpoint = { origin: `strandfast/${'5a'.repeat(32)}`, size: 12, rootHex: '01'.repeat(32) }
const note = signCheckpoint(checkpoint, keys)
const [, , , , line = ''] = note.split('\n')
const signed = line.split(' ')[2] ?? ''
const witness = (base64: string) => `\u2014 witness.example/w1 ${base64}\n`

/** The verdicts of the server's parser and the client's, which must be equal. */
async function verdictsOn(text: string): Promise<unknown[]> {
  const inClient = await runAsync(verifyCheckpoint(text, keys.publicKey), webCryptoJobs())
  return [verifyInServer(text, keys.publicKey), inClient]
}

/** The same bytes in base64, with other unused bits in the last character. */
function withOtherPaddingBits(base64: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const at = base64.indexOf('=') - 1
  const last = base64[at] ?? ''
  const other = alphabet[alphabet.indexOf(last) + 1] ?? ''
  const text = base64.slice(0, at) + other + base64.slice(at + 1)
  expect(Buffer.from(text, 'base64')).toEqual(Buffer.from(base64, 'base64'))
  return text
}

describe('a checkpoint, in the server and in the client', () => {
  it('is accepted with additional signatures of other keys', async () => {
    expect(await verdictsOn(note)).toEqual([checkpoint, checkpoint])
    const witnessed = note + witness(Buffer.alloc(76, 5).toString('base64'))
    expect(await verdictsOn(witnessed)).toEqual([checkpoint, checkpoint])
  })

  const root = note.split('\n')[2] ?? ''
  it.each([
    ['a signature with other unused bits in its base64', note.replace(signed, withOtherPaddingBits(signed))],
    ['a root with other unused bits in its base64', note.replace(root, withOtherPaddingBits(root))],
    ['a signature without its padding', note.replace(signed, signed.replaceAll('=', ''))],
    [
      'padding in the middle of a signature',
      note.replace(signed, `${signed.slice(0, 8)}=${signed.slice(9)}`),
    ],
    ['a signature followed by more bytes', note.replace(signed, `${signed}AAAA`)],
    ['a signature of another key that is not base64', note + witness('A===')],
    ['a signature of another key that consists of a key id', note + witness('AAAAAA==')],
    ['a size with a leading zero', note.replace('\n12\n', '\n012\n')],
    ['no line break at the end', note.slice(0, -1)],
  ])('is refused for %s', async (_, text) => {
    expect(text).not.toBe(note)
    expect(await verdictsOn(text)).toEqual([undefined, undefined])
  })
})
