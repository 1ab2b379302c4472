import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { verifyCommand } from '../../../src/cli/verify.js'
import { checkpointVectors, vectorExport } from '../../support/proof/checkpoint-vectors.js'

let directory = ''
let out = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-verify-checkpoint-'))
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => ((out += String(chunk)), true))
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(directory, { recursive: true })
})

function fileOf(content: string | Buffer, name: string): string {
  const file = join(directory, name)
  writeFileSync(file, content)
  return file
}

describe('strandfast verify --checkpoint', () => {
  it.each(checkpointVectors)(
    'gives the expected verdict on each frozen vector, also with --fast: $name',
    async (vector) => {
      const text = `${vectorExport(vector.export).join('\n')}\n`
      const { expected, note, public_key: key } = vector
      const checkpoint = fileOf(note, 'checkpoint.note')
      for (const file of [fileOf(text, 'export.ndjson'), fileOf(gzipSync(text), 'export.ndjson.gz')]) {
        for (const more of [[], ['--fast']]) {
          out = ''
          const code = await verifyCommand([file, '--public-key', key, '--checkpoint', checkpoint, ...more])
          expect([code, out]).toEqual(
            expected.ok
              ? [
                  0,
                  expect.stringContaining(`\ncompared    with the checkpoint of ${expected.size} records\n`),
                ]
              : [1, expect.stringMatching(/^NOT VERIFIED: /)],
          )
          if (!expected.ok) expect(out).toContain(expected.reason)
        }
      }
    },
  )

  it('names the file that is not UTF-8: the checkpoint, or the export of the server log', async () => {
    const [vector] = checkpointVectors
    if (vector === undefined) throw new Error('No vector')
    const file = fileOf(`${vectorExport(vector.export).join('\n')}\n`, 'export.ndjson')
    const notUtf8 = fileOf(Buffer.from([0xff, 0x0a]), 'latin1')
    const note = fileOf(vector.note, 'checkpoint.note')
    const verdict = async (...more: string[]) => {
      out = ''
      return [await verifyCommand([file, '--key', vector.public_key, ...more]), out]
    }
    expect(await verdict('--checkpoint', notUtf8)).toEqual([
      1,
      'NOT VERIFIED: The checkpoint is not UTF-8 text\n',
    ])
    expect(await verdict('--checkpoint', note, '--log', notUtf8)).toEqual([
      1,
      expect.stringMatching(/^NOT VERIFIED: The server log cannot be read: .*utf-8/),
    ])
  })
})
