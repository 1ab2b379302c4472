import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { bodyBytes } from '../../../../../src/front/limits/bounds.js'
import { Quota } from '../../../../../src/base/quota.js'
import { ImportStage } from '../../../../../src/front/http/import/stage.js'
import { OpenTransfers } from '../../../../../src/front/limits/transfers.js'
import type { Principal } from '../../../../../src/front/routes/route.js'
import type { CheckedRecords } from '../../../../../src/protocol/import-messages.js'
import { stagePart } from '../../../../../workers/import/part.js'
import { encodeBlock, type StoredRecord } from '../../../../../workers/store/tables/record-codec.js'

const folder = mkdtempSync(join(tmpdir(), 'stage-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Two records whose bodies have this text. */
const part = (firstSeq: number, text: string): CheckedRecords => ({
  chunk: encodeBlock([firstSeq, firstSeq + 1].map((seq) => record(seq, text))),
  firstSeq,
  lastSeq: firstSeq + 1,
  lastHash: 'a'.repeat(64),
  key: 'b'.repeat(64),
  effects: [{ seq: firstSeq, kind: 'zone', zone: 'governed' }],
  commitments: [[firstSeq, 'c'.repeat(64)]],
})

function record(seq: number, text: string): StoredRecord {
  return {
    agentNo: 1,
    seq,
    hlc: { ms: 1_000 + seq, counter: 0 },
    type: 'record',
    hash: 'd'.repeat(64),
    prev: 'e'.repeat(64),
    keyIndex: 0,
    salt: Buffer.alloc(16),
    body: Buffer.from(JSON.stringify({ text })),
    signature: Buffer.alloc(64),
  }
}

async function partsOf(stage: ImportStage): Promise<CheckedRecords[]> {
  const parts: CheckedRecords[] = []
  const principal: Principal = { id: 'key', scopes: new Set(), agents: [] }
  const memory = new OpenTransfers(new Quota(bodyBytes)).begin({ principal, holder: principal.id }, () => {})
  for await (const found of stage.parts(memory)) parts.push(found)
  return parts
}

it('returns the written parts in order', async () => {
  const stage = new ImportStage(folder)
  const parts = [part(0, 'one'), part(2, 'x'.repeat(30_000)), part(4, 'é')]
  for (const written of parts) expect(stagePart(stage.path, written)).toBe(true)
  expect(await partsOf(stage)).toEqual(parts)
  await stage.remove()
  expect(readdirSync(folder)).toEqual([])
  await expect(partsOf(stage)).rejects.toThrow('ENOENT')
  await stage.remove()
})

it('reports a full disk, and throws other errors', () => {
  expect(stagePart('/dev/full', part(0, 'one'))).toBe(false)
  expect(() => stagePart(join(folder, 'none', 'file'), part(0, 'one'))).toThrow('ENOENT')
})
