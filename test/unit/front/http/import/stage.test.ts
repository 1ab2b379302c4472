import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { ownBodies } from '../../../../../src/front/limits/bounds.js'
import { ImportStage } from '../../../../../src/front/http/import/stage.js'
import { OpenUploads } from '../../../../../src/front/limits/uploads.js'
import type { CheckedRecords } from '../../../../../src/protocol/import-messages.js'
import { stagePart } from '../../../../../workers/import/part.js'

const folder = mkdtempSync(join(tmpdir(), 'stage-'))
afterAll(() => rmSync(folder, { recursive: true }))

const part = (firstSeq: number, chunk: Buffer): CheckedRecords => ({
  chunk,
  firstSeq,
  lastSeq: firstSeq + 1,
  lastHash: 'a'.repeat(64),
  key: 'b'.repeat(64),
  effects: [{ seq: firstSeq, kind: 'zone', zone: 'governed' }],
  commitments: [[firstSeq, 'c'.repeat(64)]],
})

async function partsOf(stage: ImportStage): Promise<CheckedRecords[]> {
  const found: CheckedRecords[] = []
  for await (const one of stage.parts(new OpenUploads(ownBodies()).holdUnknown('', () => {}))) found.push(one)
  return found
}

it('gives parts back as they were put there, in their order', async () => {
  const stage = new ImportStage(folder)
  const parts = [part(0, Buffer.from('one')), part(2, Buffer.alloc(30_000, 'x')), part(4, Buffer.from('é'))]
  for (const one of parts) expect(stagePart(stage.path, one)).toBe(true)
  expect(await partsOf(stage)).toEqual(parts)
  await stage.remove()
  await expect(partsOf(stage)).rejects.toThrow('ENOENT')
  await stage.remove()
})

it('says that the disk is full where it is, and throws what else goes wrong', () => {
  expect(stagePart('/dev/full', part(0, Buffer.from('one')))).toBe(false)
  expect(() => stagePart(join(folder, 'none', 'file'), part(0, Buffer.from('one')))).toThrow('ENOENT')
})
