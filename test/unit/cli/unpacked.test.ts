import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { unpacked } from '../../../src/cli/unpacked.js'

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function read(source: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of unpacked(source)) chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

it.each(['', '\u001f', '\u001f\u008c', '{"a":1}\n'])(
  'passes on bytes that are not gzipped: %j',
  async (text) => {
    for (const size of [1, 2, 64]) expect(await read(pieces(Buffer.from(text, 'latin1'), size))).toBe(text)
  },
)

it('decompresses all members of a gzip, wherever chunks end', async () => {
  const packed = Buffer.concat([gzipSync('one\n'), gzipSync('two\n')])
  for (const size of [1, 3, 1_000]) expect(await read(pieces(packed, size))).toBe('one\ntwo\n')
})

it('ends with the error of its source, gzipped or not', async () => {
  await expect(read(pieces(gzipSync('one').subarray(0, 12), 5))).rejects.toThrow('unexpected end of file')
  async function* broken(first: Buffer): AsyncGenerator<Buffer> {
    yield first
    throw new Error('The disk is broken')
  }
  for (const first of [Buffer.from('one'), gzipSync('one')])
    await expect(read(broken(first))).rejects.toThrow('The disk is broken')
})
