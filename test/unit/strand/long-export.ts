import { checkpointOrigin, signCheckpoint } from '../../../src/strand/checkpoint.js'
import { genesisBody, keyRotateBody } from '../../../src/strand/genesis.js'
import { bodyCommitment, recordHash } from '../../../src/strand/hash.js'
import { headerText, zeroHash, rotationProofText } from '../../../src/strand/header.js'
import { formatHlc } from '../../../src/strand/hlc.js'
import { keyPairFromSeed, signText, type KeyPair } from '../../../src/strand/keys.js'
import { TreeHasher } from '../../../src/strand/merkle.js'
import { genesisType, keyRotateType } from '../../../src/strand/record-type.js'
import { manifestLine, recordLine, trailerLine } from '../../../src/strand/strand-export.js'

/** Records covered by one signature. */
const GROUP = 625

/** The keys of the long export. */
export const longExportKeys = keyPairFromSeed(Buffer.alloc(32, 3))

/**
 * A valid export of `count` records. Genesis is signed, the others are sealed in groups; each body is its
 * seq.
 */
export function longExport(count: number): string[] {
  return [...longExportLines(count)]
}

/** The last record of the group of `seq`. */
function groupEnd(seq: number, count: number): number {
  return Math.min(count - 1, Math.ceil((seq + 1) / GROUP) * GROUP - 1)
}

/** The keys after the rotation with this index. */
export function laterKeys(rotation: number): KeyPair {
  return keyPairFromSeed(Buffer.alloc(32, 100 + rotation))
}

/**
 * The lines of `longExport`. `sealOf` returns the seq of the record that seals another; if it is the same,
 * the record is signed.
 * @param rotations ascending seqs of records that are rotations to `laterKeys`
 */
export function* longExportLines(
  count: number,
  sealOf = groupEnd,
  rotations: readonly number[] = [],
): Generator<string> {
  let keys = longExportKeys
  const salt = Buffer.alloc(16, 9)
  const tree = new TreeHasher()
  let strand = zeroHash
  let prev = zeroHash
  for (let seq = 0; seq < count; seq += 1) {
    const { publicKey, secretKey } = keys
    const rotation = rotations.indexOf(seq)
    const next = rotation === -1 ? undefined : laterKeys(rotation)
    let body = String(seq)
    if (seq === 0) body = genesisBody({ agent: 'long', createdAtMs: 1, publicKey, zone: 'free' })
    if (next !== undefined) body = rotationBody(strand, next)
    const h = headerText({
      strand,
      key: publicKey,
      seq,
      prev,
      hlc: formatHlc({ ms: seq + 1, counter: 0 }),
      type: next === undefined ? (seq === 0 ? genesisType : 'record') : keyRotateType,
      body: bodyCommitment(salt, Buffer.from(body)),
    })
    const last = sealOf(seq, count)
    const signed = seq === 0 || seq === last || next !== undefined
    const sig = signed ? signText(secretKey, h).toString('hex') : undefined
    prev = recordHash(h)
    if (seq === 0) {
      strand = prev
      const counts = { fromSeq: 0, toSeq: count - 1, recordCount: count - 1 }
      yield manifestLine({ agent: 'long', strand, publicKey, ...counts })
    }
    yield recordLine({ h, sig, sealedBy: signed ? undefined : last, salt: salt.toString('hex'), body })
    tree.append(Buffer.from(prev, 'hex'))
    keys = next ?? keys
  }
  const checkpoint = {
    origin: checkpointOrigin(strand),
    size: count,
    rootHex: Buffer.from(tree.root()).toString('hex'),
  }
  const note = signCheckpoint(checkpoint, keys)
  yield trailerLine({ chainHead: prev, records: count, checkpoint: note })
}

function rotationBody(strand: string, { publicKey, secretKey }: KeyPair): string {
  const proof = signText(secretKey, rotationProofText(strand, publicKey)).toString('hex')
  return keyRotateBody(publicKey, proof)
}
