import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { AnswerCoder, codingOf, StreamCoder } from '../../../../src/front/http/content-coding.js'

const decoded = { br: brotliDecompressSync, gzip: gunzipSync }

describe('the coding that Accept-Encoding requests', () => {
  it.each([
    ['', undefined],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['br', 'br'],
    ['gzip, deflate, br, zstd', 'br'],
    ['GZIP;Q=1.0, br;q=0.9', 'gzip'],
    ['gzip;q=0', undefined],
    ['gzip;q=0.000, br;q=0.001', 'br'],
    ['*', 'br'],
    ['br;q=0, *', 'gzip'],
    ['*;q=0', undefined],
    ['identity', undefined],
    ['identity;q=1, gzip;q=0.5', undefined],
    ['identity;q=0.5, gzip;q=0.5', 'gzip'],
    ['deflate, zstd', undefined],
    ['gzip;q=2', undefined],
    ['gzip;q=x, br;q=', undefined],
    [' gzip ;q=0.3 ,\tbr ; q=0.2', 'gzip'],
    [`${'x,'.repeat(1_000)}gzip`, undefined],
  ])('is chosen from %j: %s', (header, coding) => {
    expect(codingOf(header)).toBe(coding)
  })
})

describe('an answer', () => {
  const text = JSON.stringify(Array.from({ length: 400 }, (_none, n) => ({ n, name: 'boiler' })))

  it.each(['br', 'gzip'] as const)(
    'decodes to the same text from %s, and has the header Vary',
    async (coding) => {
      const coder = new AnswerCoder()
      const parts = [Buffer.from(text.slice(0, 100)), Buffer.from(text.slice(100))]
      for (const body of [text, parts]) {
        const { body: coded, headers } = await coder.code({ status: 200, body }, coding)
        expect(headers).toEqual([
          ['Vary', 'Accept-Encoding'],
          ['Content-Encoding', coding],
        ])
        const bytes = Buffer.concat(typeof coded === 'string' ? [] : coded)
        expect(bytes.length).toBeLessThan(text.length / 4)
        expect(decoded[coding](bytes).toString()).toBe(text)
      }
    },
  )

  it('stays uncompressed if it is short or too many are being compressed', async () => {
    const coder = new AnswerCoder()
    const short = { status: 200, body: 'x'.repeat(limits.compressedAnswerBytesMin - 1) }
    expect(await coder.code(short, 'br')).toBe(short)
    const pending = Array.from({ length: limits.answerCompressionsMax + 3 }, () =>
      coder.code({ status: 200, body: text }, 'gzip'),
    )
    const answers = await Promise.all(pending)
    const plain = answers.filter(({ body }) => body === text)
    expect(plain).toHaveLength(3)
    for (const { headers } of plain) expect(headers).toEqual([['Vary', 'Accept-Encoding']])
    expect((await coder.code({ status: 200, body: text }, 'gzip')).body).not.toBe(text)
  })

  it('is compressed only once if its bytes never change', async () => {
    const coder = new AnswerCoder()
    const answer = { status: 200, body: [Buffer.from(text)], lasting: true } as const
    const [first, again] = [await coder.code(answer, 'br'), await coder.code(answer, 'br')]
    expect(first.body[0]).toBe(again.body[0])
    expect((await coder.code(answer, 'gzip')).body[0]).not.toBe(first.body[0])
  })
})

it.each(['br', 'gzip'] as const)('compresses a stream of parts by %s', async (coding) => {
  const coder = new StreamCoder(coding)
  const parts: Uint8Array[] = []
  const lines = Array.from({ length: 50 }, (_none, n) => `${n} ${'line '.repeat(n * 100)}\n`)
  for (const line of lines) parts.push(await coder.add(line))
  parts.push(await coder.end('the end\n'))
  expect(decoded[coding](Buffer.concat(parts)).toString()).toBe(`${lines.join('')}the end\n`)
  coder.close()
})

it('closes a stream that is interrupted', async () => {
  const coder = new StreamCoder('gzip')
  const adding = coder.add('x'.repeat(1_000_000))
  coder.close()
  await adding
})
