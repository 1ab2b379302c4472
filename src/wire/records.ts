import { Type, type Static } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { documented } from './documented.js'
import { first, second, signature, reading, recordExample } from './example-values.js'
import {
  AgentAddress,
  Hash,
  HlcText,
  JsonObject,
  PrefixedHash,
  PublicKey,
  Seq,
  Signature,
  UnixMs,
} from './primitives.js'

const RecordType = Type.String({
  pattern: '^[a-z0-9_./-]{1,64}$',
  default: 'record',
  description: 'Must not begin with sys/, auth/ or edge/',
})

const writtenExample = {
  record_id: second,
  id: second,
  content_hash: second,
  hash: `sha256:${second}`,
  parent_hash: first,
  timestamp_hlc: '0199c5b8f2a4-0000',
  timestamp_ms: 1_759_958_856_356,
  seq: 2,
  signature,
  agent: 'sensors',
}

/** Body of POST …/records. The shard parses it with the same rules (workers/commands/drafts.ts). */
export const RecordWriteBody = Type.Object(
  { data: JsonObject, type: Type.Optional(RecordType) },
  { additionalProperties: false },
)
documented('RecordWriteBody', RecordWriteBody, { record: { data: reading, type: 'reading' } })

/** Body of POST …/records/batch. */
export const BatchWriteBody = Type.Object(
  {
    records: Type.Array(RecordWriteBody, { minItems: 1, maxItems: limits.batchRecordsMax }),
    atomic: Type.Optional(Type.Boolean({ default: true, description: 'All or none' })),
  },
  { additionalProperties: false },
)
documented('BatchWriteBody', BatchWriteBody, {
  batch: {
    records: [
      { data: reading, type: 'reading' },
      { data: { ...reading, celsius: 72.1 }, type: 'reading' },
    ],
    atomic: true,
  },
})

/** Answer to a write. */
export const WriteResponse = Type.Object({
  record_id: Hash,
  id: Hash,
  content_hash: Hash,
  hash: PrefixedHash,
  parent_hash: Hash,
  timestamp_hlc: HlcText,
  timestamp_ms: UnixMs,
  seq: Seq,
  signature: Signature,
  sealed_by: Type.Optional(Seq),
  agent: AgentAddress,
})
export type WriteResponse = Static<typeof WriteResponse>
documented('WriteResponse', WriteResponse, { written: writtenExample })

/** Answer to a batch. If the batch is not atomic, the result of a refused item is its fault. */
export const BatchWritten = Type.Object({
  results: Type.Array(
    Type.Union([
      WriteResponse,
      Type.Object({ error: Type.Object({ code: Type.String(), detail: Type.String() }) }),
    ]),
  ),
})
export type BatchWritten = Static<typeof BatchWritten>
documented('BatchWritten', BatchWritten, { written: { results: [writtenExample] } })

/** A record in an answer. */
export const RecordView = Type.Object({
  record_id: Hash,
  content_hash: Hash,
  parent_hash: Hash,
  seq: Seq,
  timestamp_hlc: HlcText,
  timestamp_ms: UnixMs,
  type: Type.String(),
  payload: Type.Union([JsonObject, Type.Null()], { description: 'The body; null once erased' }),
  signature: Signature,
  sealed_by: Type.Optional(Seq),
  public_key: PublicKey,
  deleted: Type.Boolean(),
  erased: Type.Boolean(),
})
export type RecordView = Static<typeof RecordView>
documented('RecordView', RecordView, { record: recordExample })

/** Answer of GET /v1/records/:hash_digits. */
export const RecordsFound = Type.Object({
  records: Type.Array(
    Type.Object({
      agent: AgentAddress,
      record_id: Hash,
      seq: Seq,
      type: Type.String(),
      timestamp_hlc: HlcText,
      timestamp_ms: UnixMs,
    }),
    { minItems: 1, maxItems: limits.recordsFoundMax, description: 'Newest first' },
  ),
})
export type RecordsFound = Static<typeof RecordsFound>
documented('RecordsFound', RecordsFound, {
  found: {
    records: [
      {
        agent: 'sensors',
        record_id: second,
        seq: 2,
        type: 'reading',
        timestamp_hlc: '0199c5b8f2a4-0000',
        timestamp_ms: 1_759_958_856_356,
      },
    ],
  },
})

/** Answer to a delete, restore or erase that took effect immediately. */
export const MutationDone = Type.Object({
  record_id: Hash,
  state: Type.Enum(['deleted', 'active', 'erased']),
  seq: Seq,
})
export type MutationDone = Static<typeof MutationDone>
documented('MutationDone', MutationDone, { done: { record_id: second, state: 'deleted', seq: 3 } })
