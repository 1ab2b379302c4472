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
          const code = await verifyCommand([file, '--key', key, '--checkpoint', checkpoint, ...more])
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
})
