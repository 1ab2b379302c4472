import { afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { parseManifest } from '../../src/proof/export-lines.js'
import type { CheckedRecords } from '../../src/protocol/import-messages.js'
import type { CommandOf } from '../../src/protocol/messages.js'
import type { ImportChecked } from '../../src/protocol/reader-tasks.js'
import { checkLines } from '../../workers/import/check.js'
import { SignedStrand, textOf } from '../client/signed-strand.js'
import { appendNumber, replyOf, TestShard } from '../support/shard/shard.js'

/*
 * How much of an export a shard commits in one turn, during which the writes of other agents wait. Regression:
 * 405 erasures of the largest bodies, or 31 MB of bodies that one signature seals, were committed in one turn.
 */

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})
afterEach(() => shard.remove())

const TEXT_BYTES = 262_000

function check(strand: SignedStrand): ImportChecked {
  const [first = {}, ...lines] = strand.exportLines()
  const manifest = parseManifest(JSON.stringify(first))
  if (manifest === undefined) throw new Error('Expected a manifest')
  return checkLines({ manifest, lines: Buffer.from(textOf(lines)), agents: [] })
}

function partsOf(strand: SignedStrand): readonly CheckedRecords[] {
  const checked = check(strand)
  if ('fault' in checked) throw new Error(JSON.stringify(checked))
  return checked.parts
}

function importOf(strand: SignedStrand, part: CheckedRecords): CommandOf<'strandImport'> {
  const hash = Buffer.from(strand.hashes[0] ?? []).toString('hex')
  const about = { agent: strand.agent, strand: hash, fromSeq: 0, principal: 'root', audited: true }
  return { kind: 'strandImport', ...part, ...about, options: {} }
}

/** A strand whose records after genesis are sealed by the last one. */
function sealed(count: number): SignedStrand {
  const strand = new SignedStrand()
  for (let seq = 1; seq < count; seq++) {
    strand.append({ body: { text: 'x'.repeat(TEXT_BYTES) }, sealedBy: count })
  }
  return strand.append()
}

it('an import erases at most eight bodies in one commit, and all of them in the end', () => {
  const strand = new SignedStrand()
  const count = 2 * limits.importErasuresMax + 3
  for (let n = 0; n < count; n++) strand.append()
  for (let seq = 1; seq <= count; seq++) {
    const target = Buffer.from(strand.hashes[seq] ?? []).toString('hex')
    strand.append({ type: 'sys/erase', body: { target, target_seq: seq } })
  }
  const parts = partsOf(strand)
  const erased = parts.map(({ effects }) => effects.filter(({ kind }) => kind === 'record').length)
  expect(erased).toEqual([limits.importErasuresMax, limits.importErasuresMax, 3])
  for (const part of parts) expect(shard.ask(importOf(strand, part)).kind).toBe('imported')
  expect(replyOf(shard.ask({ kind: 'agentHead', agent: strand.agent })).seq).toBe(2 * count)
  shard.store.flush()
  expect(shard.environment.erasures.getKeysCount({})).toBe(count)
})

it('an export in which one signature seals more bytes than a server commits is refused', () => {
  const most = Math.floor(limits.importBodyBytesMax / TEXT_BYTES)
  expect(partsOf(sealed(most)).map(({ firstSeq, lastSeq }) => [firstSeq, lastSeq])).toEqual([[0, most]])
  expect(check(sealed(most + 2))).toMatchObject({ fault: { reason: 'Too many bytes have one seal' } })
})

it('a part that a late seal made large is committed in another turn than it is decoded in', () => {
  const strand = sealed(Math.ceil(limits.commitBytesMax / TEXT_BYTES) + 1)
  const [part] = partsOf(strand)
  if (part === undefined) throw new Error('Expected a part')
  const answered = () => shard.frames.flatMap(({ outcomes }) => outcomes.map(([id]) => id))
  expect(shard.turn([[1, importOf(strand, part)]])).toBe(true)
  expect(answered()).toEqual([])
  shard.turn([[2, appendNumber('other', 1)]])
  expect(answered().toSorted()).toEqual([1, 2])
})
