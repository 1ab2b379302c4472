import { asBuffer } from '../../src/base/bytes.js'
import { bodyCommitment } from '../../src/strand/hash.js'
import { type RecordHeader, zeroHash } from '../../src/strand/header.js'
import { formatHlc } from '../../src/strand/hlc.js'
import type { RecordContent } from '../../src/strand/strand-export.js'
import type { Environment } from './environment.js'
import { erasedCommitment } from './tables/erasures.js'
import type { StoredRecord } from './tables/record-codec.js'

/** What an export says about a stored record of a strand, made with `key`. */
export function exportedRecord(
  environment: Environment,
  record: StoredRecord,
  { strand, key }: { strand: string; key: string },
): { header: RecordHeader; content: RecordContent } {
  const erased = record.erased === true
  const header = {
    strand: record.seq === 0 ? zeroHash : strand,
    key,
    seq: record.seq,
    prev: record.prev,
    hlc: formatHlc(record.hlc),
    type: record.type,
    body: erased ? erasedCommitment(environment, record) : bodyCommitment(record.salt, record.body),
  }
  const content: RecordContent = {
    sig: record.signature === undefined ? undefined : asBuffer(record.signature).toString('hex'),
    sealedBy: record.sealedBy,
  }
  if (!erased) {
    content.salt = asBuffer(record.salt).toString('hex')
    content.body = asBuffer(record.body).toString('utf8')
  }
  return { header, content }
}
