// Checkpoints of a strand that continues, each with an export for comparison and the result.

import { signCheckpoint } from '../../dist/src/strand/checkpoint.js'
import { zeroHash } from '../../dist/src/strand/header.js'
import { keyPairFromSeed } from '../../dist/src/strand/keys.js'
import { first, reading, second, wholeStrand } from './strand-maker.mjs'

const third = keyPairFromSeed(Buffer.alloc(32, 7))
const unknownKey = keyPairFromSeed(Buffer.alloc(32, 8))

/** Records 8 and 12 rotate to the second and the third key. */
export function checkpointsOf() {
  const strand = wholeStrand()
    .rotate(third)
    .append({ name: 'signed by the third key', body: reading(5) })
  const noted = (size, keys, change = {}) => signCheckpoint({ ...strand.checkpoint(size), ...change }, keys)
  const endless = { checkpoint: undefined }
  const forged = wholeStrand()
    .rotate(third, { proofBy: unknownKey })
    .append({ name: 'x', body: reading(5) })
  const exports = {
    whole: strand.lines(),
    'before the last rotation': strand.lines({ to: 11, trailer: endless }),
    'before both rotations': strand.lines({ to: 7, trailer: endless }),
    'from a later record': strand.lines({ from: 7 }),
    'with a rotation that is not proven': forged.lines(),
  }
  return { exports, cases: [...fineCases(noted), ...refusedCases(noted)] }
}

function fineCases(noted) {
  const fine = (name, size, keys, publicKey = first.publicKey) => ({
    name,
    export: 'whole',
    public_key: publicKey,
    note: noted(size, keys),
    expected: { ok: true, size },
  })
  return [
    fine('of the present', 14, third),
    fine('of the past, by the key then', 7, first),
    fine('of the past, by the key of the next rotation', 7, second),
    fine('of the past, by the key of the rotation after the next', 7, third),
    fine('of the past, by a later key, checked with that key', 7, third, third.publicKey),
    fine('of the first record, by the last key', 1, third),
    fine('right before a rotation, by the key that it ends', 8, first),
    fine('right behind a rotation, by the key that it names', 9, second),
    fine('between two rotations, by the later key', 10, third),
    fine('right behind the last rotation', 13, third),
  ]
}

function refusedCases(noted) {
  const refused = (name, note, reason, of = 'whole') => ({
    name,
    export: of,
    public_key: first.publicKey,
    note,
    expected: { ok: false, reason },
  })
  const rotatedAway = (size) =>
    `The checkpoint is signed by a key that was rotated away before the strand had ${size} records`
  const unknown = (size, more = '') =>
    `The checkpoint is not signed by the key in force after ${size} records, nor by one of a later rotation in the ` +
    `export${more}`
  const cut = (has) => `, which has ${has} of 14 records: one that reaches the rotation is needed`
  return [
    refused('by the key that the last record counted has rotated away', noted(9, first), rotatedAway(9)),
    refused('by the first key, behind both rotations', noted(14, first), rotatedAway(14)),
    refused('by the second key, behind the second rotation', noted(13, second), rotatedAway(13)),
    refused('by a key that no rotation names', noted(7, unknownKey), unknown(7)),
    refused('of the present, by a key that no rotation names', noted(14, unknownKey), unknown(14)),
    refused(
      'by a later key, with an export that ends before its rotation',
      noted(7, third),
      unknown(7, cut(12)),
      'before the last rotation',
    ),
    refused(
      'by the next key, with an export that ends before its rotation',
      noted(7, second),
      unknown(7, cut(8)),
      'before both rotations',
    ),
    refused(
      'by a later key, of more records than an export that ends before its rotation',
      noted(13, third),
      unknown(12, cut(12)),
      'before the last rotation',
    ),
    refused(
      'by a later key, over other records',
      noted(7, third, { rootHex: zeroHash }),
      'The strand was forked at or before record 6: the checkpoint is over other records',
    ),
    refused(
      'by the last key, of more records than there are',
      noted(14, third, { size: 20 }),
      'The tail was cut: the checkpoint has 20 records, the export 14',
    ),
    refused(
      'by a former key, of more records than there are',
      noted(14, second, { size: 20 }),
      rotatedAway(20),
    ),
    refused(
      'with an export that does not begin at genesis',
      noted(7, third),
      'Only an export from seq 0 can be compared with a checkpoint',
      'from a later record',
    ),
    refused(
      'by the key of a rotation that is not proven',
      noted(7, third),
      'A key rotation does not prove its new key',
      'with a rotation that is not proven',
    ),
  ]
}
