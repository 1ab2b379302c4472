// Valid and invalid exports, each with the verdict of the verifier.

import { checkpointOrigin, signCheckpoint } from '../../dist/src/strand/checkpoint.js'
import { zeroHash } from '../../dist/src/strand/header.js'
import { formatHlc } from '../../dist/src/strand/hlc.js'
import { keyPairFromSeed } from '../../dist/src/strand/keys.js'
import { AGENT, START_MS, Strand, first, reading, second, wholeStrand } from './strand-maker.mjs'

export function exportsOf() {
  const strand = wholeStrand()
  const good = strand.lines({ erased: [10] })
  const fine = (name, lines, expected) => ({ name, public_key: first.publicKey, expected, lines })
  return [
    fine('whole', good, { ok: true, records: 12, first_seq: 0, last_seq: 11, partial: false }),
    {
      ...fine('whole, checked with the later key', good, {
        ok: true,
        records: 12,
        first_seq: 0,
        last_seq: 11,
        partial: false,
      }),
      public_key: second.publicKey,
    },
    fine('genesis alone', new Strand().lines(), {
      ok: true,
      records: 1,
      first_seq: 0,
      last_seq: 0,
      partial: false,
    }),
    fine('partial', strand.lines({ from: 6 }), {
      ok: true,
      records: 6,
      first_seq: 6,
      last_seq: 11,
      partial: true,
    }),
    fine('without a checkpoint', strand.lines({ trailer: { checkpoint: undefined } }), {
      ok: true,
      records: 12,
      first_seq: 0,
      last_seq: 11,
      partial: false,
    }),
    ...brokenExports(strand, good),
  ]
}

const broken = (name, lines, line, seq, reason, publicKey = first.publicKey) => ({
  name,
  public_key: publicKey,
  expected: { ok: false, line, ...(seq === undefined ? {} : { seq }), reason },
  lines,
})
const changed = (lines, at, from, to) => {
  if (!lines[at].includes(from)) throw new Error(`Line ${at} has no ${from}`)
  return lines.with(at, lines[at].replace(from, to))
}

function brokenExports(strand, good) {
  const third = keyPairFromSeed(Buffer.alloc(32, 7))
  const other = new Strand().append({ name: 'other', body: reading(99) })
  const sig = strand.records[1].signature
  const wrongSig = (sig[0] === '0' ? '1' : '0') + sig.slice(1)
  const linkReason = 'The record does not name the hash of the one before'
  const rotation = (options) =>
    new Strand().rotate(second, options).append({ name: 'after', body: reading(1) })
  return [
    broken('empty', [], 0, undefined, 'The export is empty'),
    broken('no manifest', good.slice(1), 1, undefined, 'The first line is no strand-export/v1 manifest'),
    broken('cut off', good.slice(0, 6), 6, undefined, 'The export is cut off: it has no trailer'),
    broken('a line after the trailer', [...good, good[1]], 15, undefined, 'A line follows the trailer'),
    broken(
      'a line that is not JSON',
      good.with(3, '{"h":'),
      4,
      2,
      'The line is neither a record nor the trailer',
    ),
    broken(
      'a line with a duplicate key',
      changed(good, 2, '"salt"', '"body":"{}","salt"'),
      3,
      1,
      'The line is neither a record nor the trailer',
    ),
    broken(
      'a header of another form',
      changed(good, 2, 'strand-record/v1', 'strand-record/v2'),
      3,
      1,
      'The header is not of the form strand-record/v1',
    ),
    broken('a body changed', changed(good, 2, '21.5', '21.6'), 3, 1, 'The body is not the one committed to'),
    broken(
      'a salt changed',
      changed(good, 2, strand.records[1].salt, '00'.repeat(16)),
      3,
      1,
      'The body is not the one committed to',
    ),
    broken('a signature changed', changed(good, 2, sig, wrongSig), 3, 1, 'The signature does not verify'),
    broken(
      'a header changed',
      changed(good, 2, 'type record', 'type recorD'.toLowerCase() + 's'),
      3,
      1,
      'The signature does not verify',
    ),
    broken('a record left out', good.toSpliced(2, 1), 3, 1, 'Expected seq 1, found 2'),
    broken('two records exchanged', good.with(2, good[3]).with(3, good[2]), 3, 1, 'Expected seq 1, found 2'),
    broken(
      'a record of another strand',
      good.with(
        2,
        new Strand({ header: { hlc: formatHlc({ ms: 1, counter: 0 }) } })
          .append({ name: 'x', body: reading(1) })
          .lines()[2],
      ),
      3,
      1,
      'The record belongs to another strand',
    ),
    broken(
      'a record put in place of another',
      [...good.slice(0, 2), other.lines()[2], ...good.slice(3)],
      4,
      2,
      linkReason,
    ),
    broken(
      'a strand that is not its genesis hash',
      changed(good, 0, strand.strand, zeroHash),
      2,
      0,
      'The strand is not the hash of its genesis record',
    ),
    broken(
      'a genesis record of another agent',
      changed(good, 0, AGENT, 'climate'),
      2,
      0,
      'The genesis record names another agent',
    ),
    broken(
      'a clock that goes back',
      new Strand()
        .append({ name: 'x', body: '1', header: { hlc: formatHlc({ ms: START_MS, counter: 0 }) } })
        .lines(),
      3,
      1,
      'The clock does not go forward',
    ),
    broken(
      'a second genesis',
      new Strand().append({ name: 'x', type: 'sys/genesis', body: '{}' }).lines(),
      3,
      1,
      'Genesis is record 0 and no other',
    ),
    broken(
      'a key that is not in force',
      new Strand().append({ name: 'x', body: '1', header: { key: third.publicKey }, keys: third }).lines(),
      3,
      1,
      'The record names a key that is not in force',
    ),
    broken(
      'signed by another key',
      new Strand().append({ name: 'x', body: '1', keys: third }).lines(),
      3,
      1,
      'The signature does not verify',
    ),
    broken(
      'a rotation proven by another key',
      rotation({ proofBy: third }).lines(),
      3,
      1,
      'A key rotation does not prove its new key',
    ),
    broken(
      'a rotation proven for another strand',
      rotation({ proofStrand: zeroHash }).lines(),
      3,
      1,
      'A key rotation does not prove its new key',
    ),
    broken(
      'the old key after a rotation',
      new Strand()
        .rotate(second)
        .append({ name: 'x', body: '1', header: { key: first.publicKey }, keys: first })
        .lines(),
      4,
      2,
      'The record names a key that is not in force',
    ),
    broken('an erased rotation', strand.lines({ erased: [8] }), 10, 8, 'A record that names a key is erased'),
    broken(
      'a body that is not JSON',
      new Strand().append({ name: 'x', body: 'not JSON' }).lines(),
      3,
      1,
      'The body is not JSON',
    ),
    broken(
      'ends within a sealed group',
      new Strand().append({ name: 'x', body: '1', sealedBy: 2 }).lines(),
      4,
      undefined,
      'The last record is not signed: record 2, which seals it, is not in the export',
    ),
    broken(
      'sealed by itself',
      new Strand().append({ name: 'x', body: '1', sealedBy: 1 }).lines(),
      3,
      1,
      'The record is neither signed nor sealed by a later one',
    ),
    broken(
      'a seal that is not signed',
      new Strand()
        .append({ name: 'x', body: '1', sealedBy: 2 })
        .append({ name: 'y', body: '2', sealedBy: 3 })
        .append({ name: 'z', body: '3' })
        .lines(),
      4,
      2,
      'The record seals others and is not signed',
    ),
    broken(
      'groups that overlap',
      new Strand()
        .append({ name: 'x', body: '1', sealedBy: 3 })
        .append({ name: 'y', body: '2', sealedBy: 4 })
        .append({ name: 'z', body: '3' })
        .append({ name: 'w', body: '4' })
        .lines(),
      4,
      2,
      'The record is sealed by 4 within the group of 3',
    ),
    broken(
      'fewer records than promised',
      strand.lines({ manifest: { toSeq: 12, recordCount: 12 } }),
      14,
      undefined,
      'The manifest promises records up to seq 12, the last one is 11',
    ),
    broken(
      'a chain head of another',
      strand.lines({ trailer: { chainHead: zeroHash } }),
      14,
      undefined,
      'The chain head of the trailer is not the hash of the last record',
    ),
    broken(
      'a trailer that counts wrong',
      strand.lines({ trailer: { records: 11 } }),
      14,
      undefined,
      'The trailer counts 11 records, not 12',
    ),
    broken(
      'a checkpoint by another key',
      strand.lines({ trailer: { checkpoint: signCheckpoint(strand.checkpoint(), first) } }),
      14,
      undefined,
      'The checkpoint does not verify',
    ),
    broken(
      'a checkpoint of another size',
      strand.lines({ trailer: { checkpoint: signCheckpoint({ ...strand.checkpoint(), size: 11 }, second) } }),
      14,
      undefined,
      'The checkpoint is of 11 records, not 12',
    ),
    broken(
      'a checkpoint of another strand',
      strand.lines({
        trailer: {
          checkpoint: signCheckpoint({ ...strand.checkpoint(), origin: checkpointOrigin(zeroHash) }, second),
        },
      }),
      14,
      undefined,
      'The checkpoint is of another strand',
    ),
    broken(
      'a checkpoint of another root',
      strand.lines({
        trailer: { checkpoint: signCheckpoint({ ...strand.checkpoint(), rootHex: zeroHash }, second) },
      }),
      14,
      undefined,
      'The root of the checkpoint is another',
    ),
    broken(
      'checked with a key that signed nothing',
      good,
      14,
      undefined,
      'No record is signed by the key given',
      third.publicKey,
    ),
  ]
}
