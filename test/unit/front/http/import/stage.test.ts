import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { localBodyBytes } from '../../../../../src/front/limits/bounds.js'
import { ImportStage } from '../../../../../src/front/http/import/stage.js'
import { OpenUploads } from '../../../../../src/front/limits/uploads.js'
import type { Principal } from '../../../../../src/front/routes/route.js'
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
  const parts: CheckedRecords[] = []
  const principal: Principal = { id: 'key', scopes: new Set(), agents: [] }
  const memory = new OpenUploads(localBodyBytes()).hold({ principal, owner: principal.id }, () => {})
  for await (const found of stage.parts(memory)) parts.push(found)
  return parts
}

it('returns the written parts in order', async () => {
  const stage = new ImportStage(folder)
  const parts = [part(0, Buffer.from('one')), part(2, Buffer.alloc(30_000, 'x')), part(4, Buffer.from('é'))]
  for (const written of parts) expect(stagePart(stage.path, written)).toBe(true)
  expect(await partsOf(stage)).toEqual(parts)
  await stage.remove()
  await expect(partsOf(stage)).rejects.toThrow('ENOENT')
  await stage.remove()
})

it('reports a full disk, and throws other errors', () => {
  expect(stagePart('/dev/full', part(0, Buffer.from('one')))).toBe(false)
  expect(() => stagePart(join(folder, 'none', 'file'), part(0, Buffer.from('one')))).toThrow('ENOENT')
})
