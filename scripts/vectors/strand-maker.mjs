// Creates valid and invalid strands for the vectors.

import { checkpointOrigin, signCheckpoint } from '../../dist/src/strand/checkpoint.js'
import { genesisBody, keyRotateBody } from '../../dist/src/strand/genesis.js'
import { rotationProofText, headerText, zeroHash } from '../../dist/src/strand/header.js'
import { bodyCommitment, recordHash } from '../../dist/src/strand/hash.js'
import { formatHlc } from '../../dist/src/strand/hlc.js'
import { canonicalJson } from '../../dist/src/strand/json.js'
import { keyPairFromSeed, signText } from '../../dist/src/strand/keys.js'
import { treeRoot } from '../../dist/src/strand/merkle.js'
import { manifestLine, recordLine, trailerLine } from '../../dist/src/strand/strand-export.js'

export const START_MS = 0x0199c5b8f2a4
export const AGENT = 'weather'
export const firstSeed = Buffer.from(Array.from({ length: 32 }, (_, at) => at))
export const secondSeed = Buffer.from(Array.from({ length: 32 }, (_, at) => 255 - at))
export const first = keyPairFromSeed(firstSeed)
export const second = keyPairFromSeed(secondSeed)

/**
 * A strand under construction. `header` overrides members of the valid header, which breaks it on purpose.
 */
export class Strand {
  records = []
  keys = first
  constructor(genesis = {}) {
    const body = genesisBody({
      agent: AGENT,
      createdAtMs: START_MS,
      publicKey: first.publicKey,
      zone: 'governed',
    })
    this.append({ name: 'genesis', type: 'sys/genesis', body, ...genesis })
  }
  get strand() {
    return this.records[0]?.hash ?? zeroHash
  }
  append({ name, type = 'record', body, sealedBy, header = {}, counter = 0, keys = this.keys, sign }) {
    const seq = this.records.length
    const salt = Buffer.from(recordHash(`salt ${seq}`), 'hex').subarray(0, 16)
    const commitment = bodyCommitment(salt, Buffer.from(body))
    const fields = {
      strand: this.strand,
      key: this.keys.publicKey,
      seq,
      prev: this.records.at(-1)?.hash ?? zeroHash,
      hlc: formatHlc({ ms: START_MS + 1000 * seq, counter }),
      type,
      body: commitment,
      ...header,
    }
    const text = headerText(fields)
    const record = { name, fields, header: text, salt: salt.toString('hex'), body, hash: recordHash(text) }
    if (sealedBy === undefined)
      record.signature = sign?.(text) ?? signText(keys.secretKey, text).toString('hex')
    else record.sealed_by = sealedBy
    this.records.push(record)
    return this
  }
  rotate(to, { proofBy = to, proofStrand = this.strand } = {}) {
    const proof = signText(proofBy.secretKey, rotationProofText(proofStrand, to.publicKey)).toString('hex')
    this.append({ name: 'key rotation', type: 'sys/key_rotate', body: keyRotateBody(to.publicKey, proof) })
    this.keys = to
    return this
  }
  leaves() {
    return this.records.map((record) => Buffer.from(record.hash, 'hex'))
  }
  checkpoint(size = this.records.length) {
    const rootHex = hex(root(this.leaves().slice(0, size)))
    return { origin: checkpointOrigin(this.strand), size, rootHex }
  }
  lines(change = {}) {
    const { from = 0, to = this.records.length - 1, manifest = {}, trailer = {} } = change
    const { erased = [], withheld = [] } = change
    const shown = this.records.slice(from, to + 1)
    const last = shown.at(-1)
    return [
      manifestLine({
        agent: AGENT,
        strand: this.strand,
        publicKey: shown[0].fields.key,
        fromSeq: from,
        toSeq: last.fields.seq,
        recordCount: this.records.length - 1,
        ...manifest,
      }),
      ...shown.map((record) =>
        recordLine({
          h: record.header,
          sig: record.signature,
          sealedBy: record.sealed_by,
          ...(withheld.includes(record.fields.seq) && { withheld: true }),
          ...(!erased.includes(record.fields.seq) && { salt: record.salt, body: record.body }),
        }),
      ),
      trailerLine({
        chainHead: last.hash,
        records: shown.length,
        checkpoint: signCheckpoint(this.checkpoint(), this.keys),
        ...trailer,
      }),
    ]
  }
}

export const hex = (bytes) => Buffer.from(bytes).toString('hex')
export const readerOf = (leaves) => ({ leaves: (start, end) => leaves.slice(start, end) })
export const root = (leaves) => treeRoot(leaves.length, readerOf(leaves))
export const reading = (celsius) => canonicalJson({ sensor: 'roof', celsius, ok: true })

export function wholeStrand() {
  return new Strand()
    .append({ name: 'plain record', body: reading(21.5) })
    .append({ name: 'named type', type: 'reading/outdoor', body: reading(-0.125) })
    .append({
      name: 'text beyond ASCII',
      body: canonicalJson({ straße: 'Zürich 🌦 \u2028', e: 1e21, 10: [null, 1e-7] }),
    })
    .append({
      name: 'audit record',
      type: 'auth/login',
      body: canonicalJson({ user_id: 'usr_1', outcome: 'ok' }),
    })
    .append({ name: 'sealed, first of a group', body: reading(1), sealedBy: 7 })
    .append({
      name: 'sealed, second of a group',
      body: reading(2),
      sealedBy: 7,
      header: { hlc: formatHlc({ ms: START_MS + 5000, counter: 1 }) },
    })
    .append({ name: 'seals the group', body: reading(3) })
    .rotate(second)
    .append({ name: 'signed by the new key', body: reading(4) })
    .append({ name: 'erased in the export', body: canonicalJson({ name: 'to be forgotten' }) })
    .append({ name: 'last record', body: canonicalJson([]) })
}
