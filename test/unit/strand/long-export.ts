import { checkpointOrigin, signCheckpoint } from '../../../src/strand/checkpoint.js'
import { genesisBody } from '../../../src/strand/genesis.js'
import { bodyCommitment, recordHash } from '../../../src/strand/hash.js'
import { headerText, zeroHash } from '../../../src/strand/header.js'
import { formatHlc } from '../../../src/strand/hlc.js'
import { keyPairFromSeed, signText } from '../../../src/strand/keys.js'
import { TreeHasher } from '../../../src/strand/merkle.js'
import { manifestLine, recordLine, trailerLine } from '../../../src/strand/strand-export.js'

/** Records that one signature covers. */
const GROUP = 625

/** The keys of the long export. */
export const longExportKeys = keyPairFromSeed(Buffer.alloc(32, 3))

/** A right export of `count` records, genesis signed and the others sealed in groups; each body is its seq. */
export function longExport(count: number): string[] {
  return [...longExportLines(count)]
}

/** The last record of the group of `seq`. */
function groupEnd(seq: number, count: number): number {
  return Math.min(count - 1, Math.ceil((seq + 1) / GROUP) * GROUP - 1)
}

/** The same, line by line. `sealOf` tells by which record another is sealed; one that is sealed by itself is signed. */
export function* longExportLines(count: number, sealOf = groupEnd): Generator<string> {
  const { publicKey, secretKey } = longExportKeys
  const salt = Buffer.alloc(16, 9)
  const tree = new TreeHasher()
  let strand = zeroHash
  let prev = zeroHash
  for (let seq = 0; seq < count; seq += 1) {
    const genesis = genesisBody({ agent: 'long', createdAtMs: 1, publicKey, zone: 'free' })
    const body = seq === 0 ? genesis : String(seq)
    const h = headerText({
      strand,
      key: publicKey,
      seq,
      prev,
      hlc: formatHlc({ ms: seq + 1, counter: 0 }),
      type: seq === 0 ? 'sys/genesis' : 'record',
      body: bodyCommitment(salt, Buffer.from(body)),
    })
    const last = sealOf(seq, count)
    const signed = seq === 0 || seq === last
    const sig = signed ? signText(secretKey, h).toString('hex') : undefined
    prev = recordHash(h)
    if (seq === 0) {
      strand = prev
      const counts = { fromSeq: 0, toSeq: count - 1, recordCount: count - 1 }
      yield manifestLine({ agent: 'long', strand, publicKey, ...counts })
    }
    yield recordLine({ h, sig, sealedBy: signed ? undefined : last, salt: salt.toString('hex'), body })
    tree.append(Buffer.from(prev, 'hex'))
  }
  const checkpoint = {
    origin: checkpointOrigin(strand),
    size: count,
    rootHex: Buffer.from(tree.root()).toString('hex'),
  }
  const note = signCheckpoint(checkpoint, longExportKeys)
  yield trailerLine({ chainHead: prev, records: count, checkpoint: note })
}
